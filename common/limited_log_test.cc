#include "common/limited_log.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class LimitedLogTest : public testing::Test {
 protected:
  std::vector<std::string> Take(const std::string& whose) { return log_.Take(whose, "no", now_); }
  void Fill(const std::string& whose, int times) {
    for (int i = 0; i < times; ++i) Take(whose);
  }

  LimitedLog log_;
  LimitedLog::Clock::time_point now_{};
};

TEST_F(LimitedLogTest, TheFirstLinesAreWritten) { EXPECT_THAT(Take("bob"), ElementsAre("no")); }
TEST_F(LimitedLogTest, TheLastOneSaysThatNoMoreAre) {
  Fill("bob", LimitedLog::kMost - 1);
  EXPECT_THAT(Take("bob"), ElementsAre("no", "bob: further lines are counted only, for a minute"));
  EXPECT_THAT(Take("bob"), IsEmpty());
}
TEST_F(LimitedLogTest, OthersAreWrittenMeanwhile) {
  Fill("bob", 100'000);
  EXPECT_THAT(Take("ada"), ElementsAre("no"));
}
TEST_F(LimitedLogTest, WhatWasLeftOutIsToldByTheNextLineOfAnybody) {
  Fill("bob", LimitedLog::kMost + 7);
  now_ += LimitedLog::kPeriod;
  EXPECT_THAT(Take("ada"), ElementsAre("bob: 7 more lines were left out", "no"));
}
TEST_F(LimitedLogTest, AfterThatItBeginsAnew) {
  Fill("bob", 1000);
  now_ += LimitedLog::kPeriod;
  Take("ada");
  EXPECT_THAT(Take("bob"), ElementsAre("no"));
}
TEST_F(LimitedLogTest, ACrowdIsCountedTogether) {
  for (size_t i = 0; i < LimitedLog::kMostNames; ++i) Take(absl::StrCat("user ", i));
  Fill("a", LimitedLog::kMost);
  EXPECT_THAT(Take("b"), IsEmpty());
}

}  // namespace
}  // namespace siding
