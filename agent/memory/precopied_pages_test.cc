#include "agent/memory/precopied_pages.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

PageRun Pages(uint64_t page, uint64_t pages, uint32_t flags = kPagePresent) {
  return {page * PageSize(), pages, flags};
}

class PrecopiedPagesTest : public ::testing::Test {
 protected:
  // "3+2 base, 5+1 @7": pages 3 and 4 are the base's, page 5 is page 7 of the copies.
  std::string Sources(const std::vector<PageRun>& lap) const {
    std::string text;
    for (const SourcedPages& pages : pages_.Sources(lap)) {
      absl::StrAppend(&text, text.empty() ? "" : ", ", pages.address / PageSize(), "+", pages.pages, " ");
      if (pages.source == PageSource::kPrecopied)
        absl::StrAppend(&text, "@", pages.offset / PageSize());
      else
        absl::StrAppend(&text, pages.source == PageSource::kBase ? "base" : "process");
    }
    return text;
  }
  std::string Clean(uint64_t page, uint64_t pages) const {
    return Sources({Pages(page, pages, kPageInParent)});
  }
  void Copy(const std::vector<PageRun>& runs, uint64_t at_page) {
    pages_.Written(runs);
    pages_.Copied(runs, at_page * PageSize());
  }

  PrecopiedPages pages_;
};

TEST_F(PrecopiedPagesTest, WhatWasNeverWrittenIsTheBases) { EXPECT_EQ(Clean(3, 4), "3+4 base"); }

TEST_F(PrecopiedPagesTest, WhatHasBeenWrittenSinceTheLastLapIsTakenFromTheProcess) {
  Copy({Pages(3, 4)}, 0);
  EXPECT_EQ(Sources({Pages(3, 4)}), "3+4 process");
}

TEST_F(PrecopiedPagesTest, WhatWasCopiedIsWhereItWasPut) {
  Copy({Pages(3, 2), Pages(7, 1)}, 10);
  EXPECT_EQ(Clean(1, 9), "1+2 base, 3+2 @10, 5+2 base, 7+1 @12, 8+2 base");
  EXPECT_EQ(Clean(4, 1), "4+1 @11");
}

TEST_F(PrecopiedPagesTest, WhatWasWrittenAndNotCopiedIsTakenFromTheProcess) {
  pages_.Written({Pages(3, 2)});
  EXPECT_EQ(Clean(2, 4), "2+1 base, 3+2 process, 5+1 base");
}

TEST_F(PrecopiedPagesTest, OfWhatWasCopiedTwiceTheSecondCopyCounts) {
  Copy({Pages(0, 10)}, 0);
  Copy({Pages(2, 2), Pages(5, 1)}, 10);
  EXPECT_EQ(Clean(0, 10), "0+2 @0, 2+2 @10, 4+1 @4, 5+1 @12, 6+4 @6");
}

TEST_F(PrecopiedPagesTest, ACopyOverSeveralTakesTheirPlace) {
  Copy({Pages(1, 2), Pages(5, 2), Pages(9, 2)}, 0);
  Copy({Pages(2, 8)}, 20);
  EXPECT_EQ(Clean(0, 12), "0+1 base, 1+1 @0, 2+8 @20, 10+1 @5, 11+1 base");
}

TEST_F(PrecopiedPagesTest, WhatCouldNotBeReadIsTakenFromTheProcess) {
  Copy({Pages(0, 4), Pages(6, 2)}, 0);
  pages_.Written({Pages(1, 1), Pages(7, 1)});
  EXPECT_EQ(Clean(0, 8), "0+1 @0, 1+1 process, 2+2 @2, 4+2 base, 6+1 @4, 7+1 process");
}

TEST_F(PrecopiedPagesTest, WithoutItsCopiesAllThatWasWrittenIsTakenFromTheProcess) {
  Copy({Pages(0, 2), Pages(4, 2)}, 7);
  pages_.LoseCopies();
  EXPECT_EQ(Clean(0, 7), "0+2 process, 2+2 base, 4+2 process, 6+1 base");
}

TEST_F(PrecopiedPagesTest, InDoubtAllIsTakenFromTheProcess) {
  Copy({Pages(0, 4)}, 0);
  pages_.Distrust();
  EXPECT_EQ(Clean(0, 8), "0+8 process");
}

}  // namespace
}  // namespace siding
