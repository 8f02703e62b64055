#include "agent/memory/checked_pages.h"

#include <cstring>
#include <optional>

#include "agent/memory/process_pages.h"
#include "agent/memory/writer_for_test.h"
#include "gmock/gmock.h"

namespace siding {
namespace {

using ::testing::Optional;

const auto kReadAll = [] { return false; };
constexpr uint64_t kPages = 8 * CheckedPages::kGroup;

class CheckedPagesTest : public ::testing::Test {
 protected:
  CheckedPagesTest() : at_(writer_.Map(kPages)) {
    writer_.Store(at_, kPages, 1);
    last_.resize(kPages * PageSize());
    ProcessPages(writer_.pid(), nullptr)
        .Read({{reinterpret_cast<void*>(at_), last_.size()}}, last_.data())
        .IgnoreError();
  }
  uint64_t At(uint64_t page) const { return at_ + page * PageSize(); }
  size_t Take(uint64_t every, uint64_t turn) {
    const size_t before = checked_.size();
    EXPECT_EQ(checked_.Take(writer_.pid(), {{at_, kPages, kPageInParent}}, every, turn, kReadAll),
              absl::OkStatus());
    return checked_.size() - before;
  }
  std::optional<uint64_t> FindChanged(const std::vector<SourcedPages>& pages) const {
    return checked_
        .FindChanged(pages,
                     [&](uint64_t address, uint64_t bytes, char* to) {
                       memcpy(to, last_.data() + (address - at_), bytes);
                       return absl::OkStatus();
                     })
        .value();
  }

  Writer writer_;
  const uint64_t at_;
  std::string last_;  // what the last image has
  CheckedPages checked_;
};

TEST_F(CheckedPagesTest, APageThatHasChangedIsFound) {
  writer_.Store(At(40), 1, 9);
  EXPECT_EQ(Take(1, 0), kPages);
  EXPECT_THAT(FindChanged({{at_, kPages, PageSource::kBase}}), Optional(At(40)));
}

TEST_F(CheckedPagesTest, PagesThatHaveNotChangedAreAsInTheLastImage) {
  Take(1, 0);
  EXPECT_EQ(FindChanged({{at_, kPages, PageSource::kBase}}), std::nullopt);
}

TEST_F(CheckedPagesTest, OneThatIsSaidToBeWrittenIsNotCompared) {
  writer_.Store(At(40), 1, 9);
  Take(1, 0);
  EXPECT_EQ(FindChanged({{at_, 40, PageSource::kBase},
                         {At(40), 1, PageSource::kProcess},
                         {At(41), kPages - 41, PageSource::kBase}}),
            std::nullopt);
}

TEST_F(CheckedPagesTest, InAsManyTurnsEachIsReadOnce) {
  size_t all = 0;
  for (uint64_t turn = 3; turn < 3 + 4; ++turn) {
    const size_t some = Take(4, turn);
    EXPECT_LT(some, kPages / 2);
    all += some;
  }
  EXPECT_EQ(all, kPages);
}

// It has given them away, and the kernel has taken them.
TEST_F(CheckedPagesTest, PagesOfZerosAreNotCompared) {
  writer_.Drop(At(3), 5);
  EXPECT_EQ(Take(1, 0), kPages - 5);
}

TEST_F(CheckedPagesTest, WhatIsGoneIsNotCompared) {
  writer_.Unmap(At(30), 20);
  EXPECT_EQ(Take(1, 0), kPages - 20);
  EXPECT_EQ(FindChanged({{at_, kPages, PageSource::kBase}}), std::nullopt);
}

TEST_F(CheckedPagesTest, ItEndsWhenItIsToldTo) {
  EXPECT_TRUE(absl::IsCancelled(
      checked_.Take(writer_.pid(), {{at_, kPages, kPageInParent}}, 1, 0, [] { return true; })));
}

}  // namespace
}  // namespace siding
