#include "controller/platform/slurm/client/marks.h"

#include "gtest/gtest.h"

namespace siding::slurm {
namespace {

const Mark kPinned{true, "makes way for job 42"};

TEST(Marks, AreReadAsTheyAreWritten) {
  for (const Mark& mark : {Mark{}, kPinned, Mark{true, "a: b", true}, Mark{false, "", true},
                           Mark{false, "x", false, Mark::Nice{-7, -2'000'000'000}}}) {
    EXPECT_EQ(MarkOf(WithMark("", mark)), mark) << WithMark("", mark);
    EXPECT_EQ(MarkOf(WithMark("other words", mark)), mark);
  }
}

TEST(Marks, AreMadeForPeople) { EXPECT_EQ(WithMark("", kPinned), "[siding pinned: makes way for job 42]"); }

TEST(Marks, ANiceValueIsReadOnlyIfBothAreThere) {
  EXPECT_EQ(MarkOf("[siding nice=0/-1: x]")->nice, (Mark::Nice{0, -1}));
  for (const char* comment : {"[siding nice=0: x]", "[siding nice=/: x]", "[siding nice=a/b: x]"})
    EXPECT_FALSE(MarkOf(comment)->nice) << comment;
}

TEST(Marks, WhatElseTheCommentSaysStays) {
  const std::string marked = WithMark("bring back soon", kPinned);
  EXPECT_EQ(marked, "[siding pinned: makes way for job 42] bring back soon");
  EXPECT_EQ(WithMark(marked, std::nullopt), "bring back soon");
}

TEST(Marks, ASecondTakesThePlaceOfTheFirst) {
  EXPECT_EQ(WithMark(WithMark("x", kPinned), Mark{false, "is back"}), "[siding: is back] x");
}

TEST(Marks, AReasonCannotEndTheMark) {
  EXPECT_EQ(MarkOf(WithMark("", Mark{true, "node[1]"}))->why, "node[1)");
}

TEST(Marks, OtherCommentsAreNone) {
  for (const char* comment :
       {"", "siding", "[sidings pinned: x]", "[siding", "[siding pinned", "see [siding pinned: x]"}) {
    EXPECT_FALSE(MarkOf(comment)) << comment;
    EXPECT_EQ(WithMark(comment, std::nullopt), comment);
  }
}

TEST(StartByOf, IsReadFromTheMarkOfThePlugin) {
  const Time noon = FromMicros(1795262400'000000);
  EXPECT_EQ(StartByOf("[siding start-by=2026-11-21T12:00:00.000000Z]"), noon);
  EXPECT_EQ(StartByOf("[siding start-by=2026-11-21T12:00:00.000007Z] my own"), noon + Duration(7));
}

TEST(StartByOf, OtherCommentsHaveNone) {
  for (const char* comment :
       {"", "[siding pinned: x]", "[siding start-by=soon]", "[siding start-by=+60s]",
        "[siding start-by=2026-11-21T12:00:00Z", "see [siding start-by=2026-11-21T12:00:00Z]"}) {
    EXPECT_FALSE(StartByOf(comment)) << comment;
  }
}

}  // namespace
}  // namespace siding::slurm
