#include "model/trends.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Half past one on the second of January 1970.
constexpr Time kAt{std::chrono::hours(25) + minutes(30)};

Trend Met(int64_t times) {
  Trend trend;
  trend.met = times;
  return trend;
}

TEST(Trends, WhatHappensIsOfItsHourAndOfItsDay) {
  Trends trends;
  Add(trends, kAt, Met(1));
  EXPECT_EQ(trends.hours.at(Time(std::chrono::hours(25))).met, 1);
  EXPECT_EQ(trends.days.at(Time(std::chrono::hours(24))).met, 1);
}
TEST(Trends, NumbersOfOneHourAddUp) {
  Trend one = Met(1), other;
  one.lost_node_ms[LossBy::kKill] = 1500;
  other.lost_node_ms[LossBy::kKill] = 500;
  other.releases = {{0, 2}};
  other.writes[Tier::kLocal] = {1, Bytes{10}, seconds(2)};
  Trends trends;
  Add(trends, kAt, one);
  Add(trends, kAt + minutes(29), other);
  Add(trends, kAt + minutes(29), other);
  ASSERT_THAT(trends.hours, SizeIs(1));
  const Trend& sum = trends.hours.begin()->second;
  EXPECT_EQ(sum.met, 1);
  EXPECT_EQ(sum.lost_node_ms.at(LossBy::kKill), 2500);
  EXPECT_EQ(sum.releases.at(0), 4);
  EXPECT_EQ(sum.writes.at(Tier::kLocal), (ImageWrites{2, Bytes{20}, seconds(4)}));
}
TEST(Trends, TwoAddUp) {
  Trends one, other;
  Add(one, kAt, Met(1));
  Add(other, kAt, Met(2));
  Add(other, kAt + kOneHour, Met(4));
  Add(one, other);
  EXPECT_EQ(one.hours.begin()->second.met, 3);
  EXPECT_THAT(one.hours, SizeIs(2));
  EXPECT_EQ(one.days.begin()->second.met, 7);
}
TEST(Trends, HoursOfAWeekAreKept) {
  Trends trends;
  Add(trends, kAt, Met(1));
  Trim(trends, kAt + kHoursKept - kOneHour);
  EXPECT_THAT(trends.hours, SizeIs(1));
  Trim(trends, kAt + kHoursKept);
  EXPECT_THAT(trends.hours, IsEmpty());
  EXPECT_THAT(trends.days, SizeIs(1));
}
TEST(Trends, AndDaysOfAQuarter) {
  Trends trends;
  Add(trends, kAt, Met(1));
  Trim(trends, kAt + kDaysKept - kOneDay);
  EXPECT_THAT(trends.days, SizeIs(1));
  Trim(trends, kAt + kDaysKept);
  EXPECT_THAT(trends.days, IsEmpty());
}
TEST(Ratios, AsPredictedIsOne) { EXPECT_EQ(RatioOf(RatioStep(seconds(3), seconds(3))), 1); }
TEST(Ratios, AreExactToATwentieth) {
  for (const double ratio : {0.04, 0.51, 0.97, 1.06, 3.3, 30.0}) {
    const double told = RatioOf(RatioStep(FromSeconds(100 * ratio), seconds(100)));
    EXPECT_NEAR(told / ratio, 1, 0.05) << ratio;
  }
}
TEST(Ratios, EndAtTheScalesEnds) {
  EXPECT_EQ(RatioOf(RatioStep(seconds(3600), seconds(2))), 32);
  EXPECT_EQ(RatioOf(RatioStep(seconds(2), seconds(3600))), 1.0 / 32);
}
TEST(Ratios, LessThanASecondIsOne) {
  EXPECT_EQ(RatioOf(RatioStep(milliseconds(400), milliseconds(3))), 1);
  EXPECT_EQ(RatioOf(RatioStep(seconds(2), Duration(0))), 2);
  EXPECT_EQ(RatioOf(RatioStep(Duration(-1), seconds(2))), 0.5);
}
TEST(Ratios, QuantilesAreThoseOfSoMany) {
  const std::map<int, int64_t> ten{{-8, 1}, {0, 7}, {8, 2}};
  EXPECT_EQ(Quantile(ten, 0.1), 0.5);
  EXPECT_EQ(Quantile(ten, 0.5), 1);
  EXPECT_EQ(Quantile(ten, 0.8), 1);
  EXPECT_EQ(Quantile(ten, 0.9), 2);
}
TEST(Ratios, NoneHasNoQuantile) { EXPECT_EQ(Quantile({}, 0.5), 0); }

}  // namespace
}  // namespace siding
