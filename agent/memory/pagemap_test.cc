#include "agent/memory/pagemap.h"

#include "gmock/gmock.h"

namespace siding {
namespace {

using testing::HasSubstr;

constexpr uint64_t kAt = 0x7f0000000000;

Pagemap Example() {
  return {7,
          true,
          {{kAt, 3, kPagePresent},
           {kAt + 3 * PageSize(), 1, kPageInParent},
           {kAt + (1 << 30), 2, kPagePresent | kPageLazy}}};
}

// `text` with a number of 32 bits changed.
std::string With(std::string text, size_t at, char byte) {
  text.at(at) = byte;
  return text;
}

TEST(PagemapTest, IsReadAsItWasWritten) {
  EXPECT_EQ(ParsePagemap(PagemapText(Example())).value(), Example());
}

TEST(PagemapTest, OfAnOlderCriuIsReadAsItWasWritten) {
  Pagemap older = Example();
  older.has_64_bit_counts = false;
  EXPECT_EQ(ParsePagemap(PagemapText(older)).value(), older);
}

// As criu 4.2.1 has written it for a process of two runs.
TEST(PagemapTest, OfCriuItselfIsRead) {
  const std::string text(
      "\x19\x43\x56\x54\x25\x40\x08\x56\x02\0\0\0\x08\x01"
      "\x0b\0\0\0\x08\x80\x80\x80\x02\x10\0\x20\x04\x28\x02"
      "\x0b\0\0\0\x08\x80\xa0\x81\x02\x10\0\x20\x01\x28\x01",
      44);
  EXPECT_EQ(ParsePagemap(text).value(),
            (Pagemap{1, true, {{0x400000, 2, kPagePresent}, {0x405000, 1, kPageInParent}}}));
}

TEST(PagemapTest, CountsPresentPages) { EXPECT_EQ(Example().Present(), 5u); }

TEST(PagemapTest, AnotherFileIsNone) {
  EXPECT_THAT(ParsePagemap("").status().message(), HasSubstr("no pagemap"));
  EXPECT_THAT(ParsePagemap(With(PagemapText(Example()), 4, '\0')).status().message(),
              HasSubstr("no pagemap"));
}

TEST(PagemapTest, AnEntryThatIsLongerThanAnyIsRefused) {
  std::string text = PagemapText({7, true, {}});
  for (const uint32_t size : {2000u, 0x80000000u}) {
    std::string longer = text;
    longer.append(reinterpret_cast<const char*>(&size), sizeof size);
    EXPECT_TRUE(absl::IsDataLoss(ParsePagemap(longer + std::string(3000, '\x08')).status())) << size;
  }
}

TEST(PagemapTest, CutOffAnywhereIsRefused) {
  const std::string text = PagemapText({7, true, {{kAt, 3, kPagePresent}}});
  for (size_t size = 0; size < text.size(); ++size) {
    if (size == PagemapText({7, true, {}}).size()) continue;  // which is a whole one, without pages
    EXPECT_TRUE(absl::IsDataLoss(ParsePagemap(text.substr(0, size)).status())) << size;
  }
}

TEST(PagemapTest, RunsThatNoProcessHasAreRefused) {
  const uint64_t page = PageSize();
  const std::vector<std::vector<PageRun>> bad = {
      {{kAt + 1, 1, kPagePresent}},                             // not a page
      {{kAt, 0, kPagePresent}},                                 // none
      {{kAt, uint64_t{1} << 60, kPagePresent}},                 // beyond all memory
      {{kAt, 2, kPagePresent}, {kAt + page, 1, kPagePresent}},  // one over the other
      {{kAt, 1, kPagePresent}, {kAt - page, 1, kPagePresent}},  // not in order
      {{kAt, 1, kPagePresent | kPageInParent}},                 // in two places
      {{uint64_t{1} << 62, 1, kPagePresent}},                   // beyond all addresses
  };
  for (const auto& runs : bad)
    EXPECT_THAT(ParsePagemap(PagemapText({7, true, runs})).status().message(),
                HasSubstr(": expected pages after"));
}

}  // namespace
}  // namespace siding
