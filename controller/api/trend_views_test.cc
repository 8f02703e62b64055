#include "controller/api/trend_views.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Time kBegins{std::chrono::hours(25)};

v1::Trend Shown(const Trend& trend) {
  Trends trends;
  Add(trends, kBegins, trend);
  return ShowTrends(trends).hours(0);
}

TEST(TrendViews, AnHourSaysWhenItWas) {
  const v1::Trend view = Shown({.met = 1});
  EXPECT_EQ(view.begins_us(), ToMicros(kBegins));
  EXPECT_EQ(view.ends_us(), ToMicros(kBegins + kOneHour));
}
TEST(TrendViews, ItIsOfItsDayToo) {
  Trends trends;
  Add(trends, kBegins, {.missed = 2});
  const v1::TrendsResponse shown = ShowTrends(trends);
  ASSERT_THAT(shown.days(), SizeIs(1));
  EXPECT_EQ(shown.days(0).missed(), 2);
  EXPECT_EQ(shown.days(0).ends_us() - shown.days(0).begins_us(), kOneDay.count());
}
TEST(TrendViews, AllOfThemAddUp) {
  Trends trends;
  Add(trends, kBegins, {.met = 2, .releases = {{0, 1}}});
  Add(trends, kBegins + 3 * kOneHour, {.met = 3, .releases = {{8, 1}}});
  const v1::Trend week = ShowTrends(trends).week();
  EXPECT_EQ(week.met(), 5);
  EXPECT_EQ(week.begins_us(), ToMicros(kBegins));
  EXPECT_EQ(week.ends_us(), ToMicros(kBegins + 4 * kOneHour));
  EXPECT_EQ(week.releases().count(), 2);
  EXPECT_EQ(week.releases().median(), 1);
  EXPECT_EQ(week.releases().ninetieth(), 2);
}
TEST(TrendViews, WhatNothingWasLostByIsNotNamed) {
  const v1::Trend view = Shown({.lost_node_ms = {{LossBy::kKill, 1500}}});
  ASSERT_THAT(view.lost(), SizeIs(1));
  EXPECT_EQ(view.lost(0).how(), "kill");
  EXPECT_EQ(view.lost(0).node_seconds(), 1.5);
}
TEST(TrendViews, WhatIsTakenBackLaterIsNotLessThanNothing) {
  EXPECT_EQ(Shown({.preemptions = -1}).preemptions(), 0);
  EXPECT_EQ(Shown({.missed = -1}).missed(), 0);
}
TEST(TrendViews, WritesAreSaidByTier) {
  Trend trend;
  trend.writes[Tier::kShared] = {2, Bytes{100}, std::chrono::milliseconds(2500)};
  const v1::Trend view = Shown(trend);
  ASSERT_THAT(view.writes(), SizeIs(1));
  EXPECT_EQ(view.writes(0).tier(), v1::SHARED);
  EXPECT_EQ(view.writes(0).images(), 2);
  EXPECT_EQ(view.writes(0).bytes(), 100);
  EXPECT_EQ(view.writes(0).seconds(), 2.5);
}
TEST(TrendViews, NothingIsNothing) {
  const v1::TrendsResponse shown = ShowTrends({});
  EXPECT_THAT(shown.hours(), IsEmpty());
  EXPECT_EQ(shown.week().begins_us(), 0);
}

}  // namespace
}  // namespace siding
