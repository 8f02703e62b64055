#include "common/utf8.h"

#include "gtest/gtest.h"

namespace siding {
namespace {

TEST(FindNotUtf8, TextOfAnyLanguageIs) {
  EXPECT_EQ(FindNotUtf8(""), std::nullopt);
  EXPECT_EQ(FindNotUtf8("abc \x7F Gr\xC3\xB6\xC3\x9F"
                        "e \xE2\x82\xAC \xF0\x9F\x9A\x82"),
            std::nullopt);
}

TEST(FindNotUtf8, TheFirstAndLastOfEachLengthAre) {
  for (const char* text : {"\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                           "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"})
    EXPECT_EQ(FindNotUtf8(text), std::nullopt) << text;
}

TEST(FindUnseen, SaysWhatAndWhere) {
  const auto unseen = FindUnseen("\xC3\xB6\xFF\xE2\x80\xAEx");
  ASSERT_TRUE(unseen);
  EXPECT_EQ(unseen->at, 3U);
  EXPECT_EQ(unseen->size, 3U);
  EXPECT_EQ(NameOf(*unseen), "U+202E");
}
TEST(FindUnseen, GoesOnFromWhereItIsTold) {
  EXPECT_EQ(FindUnseen("\x01-\x02", 1)->at, 2U);
  EXPECT_EQ(FindUnseen("\x01-\x02", 3), std::nullopt);
}

TEST(FindNotUtf8, SaysWhere) {
  EXPECT_EQ(FindNotUtf8("ab\xFF"), 2U);
  EXPECT_EQ(FindNotUtf8("\xC3\xB6\x80"), 2U);
}

TEST(FindNotUtf8, WhatIsCutShortIsNot) {
  for (const char* text : {"\xC3", "\xE2\x82", "\xF0\x9F\x9A", "\xE2x\x82"})
    EXPECT_EQ(FindNotUtf8(text), 0U) << text;
}

TEST(FindNotUtf8, TooLongSurrogatesAndTooLargeAreNot) {
  for (const char* text : {"\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                           "\xF4\x90\x80\x80", "\xF5\x80\x80\x80"})
    EXPECT_EQ(FindNotUtf8(text), 0U) << text;
}

TEST(ToUtf8, TextStaysAsItIs) {
  EXPECT_EQ(ToUtf8("Gr\xC3\xB6\xC3\x9F"
                   "e"),
            "Gr\xC3\xB6\xC3\x9F"
            "e");
}

TEST(ToUtf8, EachByteThatIsNoneIsReplaced) {
  EXPECT_EQ(ToUtf8("\xFF"), "\xEF\xBF\xBD");
  EXPECT_EQ(ToUtf8("a\xC3 b\xE2\x82"), "a\xEF\xBF\xBD b\xEF\xBF\xBD\xEF\xBF\xBD");
}

}  // namespace
}  // namespace siding
