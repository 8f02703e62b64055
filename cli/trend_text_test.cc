#include "cli/trend_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

v1::TrendsResponse Busy() {
  v1::TrendsResponse trends;
  v1::Trend& hour = *trends.add_hours();
  hour.set_begins_us(ToMicros(Time(std::chrono::hours(25))));
  hour.set_met(41);
  hour.set_missed(2);
  hour.set_preemptions(7);
  hour.mutable_releases()->set_count(9);
  hour.mutable_releases()->set_median(0.917);
  hour.mutable_releases()->set_ninetieth(1.3);
  v1::LostBy& lost = *hour.add_lost();
  lost.set_how("kill");
  lost.set_node_seconds(12.34);
  v1::TierWrites& writes = *hour.add_writes();
  writes.set_tier(v1::SHARED);
  writes.set_bytes(256 << 20);
  writes.set_seconds(2);
  *trends.mutable_week() = hour;
  return trends;
}

TEST(TrendText, AnHour) {
  EXPECT_THAT(
      TrendsTable(Busy(), true, {}),
      HasSubstr("\n1970-01-02 01:00  41   2       0        7          12.3         0.92    1.30  -      "
                "128.0 MiB/s  kill 12.3\n"));
}
TEST(TrendText, AllHoursTogether) {
  EXPECT_THAT(TrendsTable(Busy(), true, {}), HasSubstr("\nall               41 "));
}
TEST(TrendText, ADayHasNoHour) {
  v1::TrendsResponse trends = Busy();
  *trends.add_days() = trends.hours(0);
  const std::string text = TrendsTable(trends, false, {});
  EXPECT_THAT(text, StartsWith("DAY (UTC) "));
  EXPECT_THAT(text, HasSubstr("\n1970-01-02  41 "));
}
TEST(TrendText, WhatDidNotHappenIsNoNumber) {
  v1::TrendsResponse trends = Busy();
  trends.mutable_hours(0)->clear_releases();
  EXPECT_THAT(TrendsTable(trends, true, {}), Not(HasSubstr("12.3         0.00")));
}
TEST(TrendText, WhereNothingHappenedThatIsSaid) {
  EXPECT_EQ(TrendsTable({}, true, {}), "nothing has happened in the last 7 days\n");
  EXPECT_EQ(TrendsTable({}, false, {}), "nothing has happened in the last 90 days\n");
}

}  // namespace
}  // namespace siding::cli
