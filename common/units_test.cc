#include "common/units.h"

#include <cmath>

#include "gtest/gtest.h"

namespace siding {
namespace {

using namespace std::chrono_literals;

TEST(ParseDuration, AddsUnits) { EXPECT_EQ(*ParseDuration("1m30s"), 90s); }
TEST(ParseDuration, TakesFractions) { EXPECT_EQ(*ParseDuration("1.5s"), 1500ms); }
TEST(ParseDuration, WantsAUnit) { EXPECT_FALSE(ParseDuration("90").ok()); }
TEST(ParseDuration, RefusesNegative) { EXPECT_FALSE(ParseDuration("-5s").ok()); }
TEST(ParseDuration, RefusesMoreThanACentury) { EXPECT_FALSE(ParseDuration("99999999999d").ok()); }
TEST(ParseDuration, NamesWhatItGot) {
  EXPECT_NE(ParseDuration("soon").status().message().find("'soon'"), std::string::npos);
}

TEST(ParseBytes, KnowsBinaryAndDecimal) {
  EXPECT_EQ(ParseBytes("1.5GiB")->value, 1610612736);
  EXPECT_EQ(ParseBytes("2GB")->value, 2000000000);
}
TEST(ParseBytes, RefusesAnUnknownUnit) { EXPECT_FALSE(ParseBytes("5 parsecs").ok()); }

TEST(ParseTime, RelativeIsAfterNow) { EXPECT_EQ(*ParseTime("+60s", FromMicros(5)), FromMicros(60000005)); }
TEST(ParseTime, ReadsWhatFormatTimeWrites) {
  const Time t = FromMicros(1'777'636'800'250'000);
  EXPECT_EQ(*ParseTime(FormatTime(t), FromMicros(0)), t);
}

TEST(FormatDuration, KeepsThreeDigits) {
  EXPECT_EQ(FormatDuration(12ms), "12ms");
  EXPECT_EQ(FormatDuration(2350ms), "2.35s");
  EXPECT_EQ(FormatDuration(90s), "1m30s");
  EXPECT_EQ(FormatDuration(-90s), "-1m30s");
}
TEST(FormatBytes, PicksTheUnit) {
  EXPECT_EQ(FormatBytes({512}), "512 B");
  EXPECT_EQ(FormatBytes({1610612736}), "1.5 GiB");
}

TEST(ParseTime, EndsWithTheCalendar) {
  EXPECT_EQ(*ParseTime("9999-12-31T23:59:59Z", Time{}), kLatestTime);
  for (const char* text :
       {"infinite-future", "infinite-past", "10000-01-01T00:00:00Z", "1969-12-31T23:59:59Z"})
    EXPECT_FALSE(ParseTime(text, Time{}).ok()) << text;
}

TEST(FromSeconds, WhatIsNoNumberIsAsLongAsCanBe) {
  EXPECT_EQ(FromSeconds(std::nan("")), FromSeconds(1e300));
  EXPECT_EQ(FromSeconds(-1e300), -FromSeconds(1e300));
}

TEST(FormatDuration, NothingIsFinerThanAMillisecond) {
  EXPECT_EQ(FormatDuration(0us), "0s");
  EXPECT_EQ(FormatDuration(392us), "<1ms");
  EXPECT_EQ(FormatDuration(-392us), "<1ms");
  EXPECT_EQ(FormatDuration(1ms), "1ms");
  EXPECT_EQ(FormatDuration(-1ms), "-1ms");
}

TEST(FormatDuration, TheLeast) { EXPECT_EQ(FormatDuration(Duration::min()).front(), '-'); }

}  // namespace
}  // namespace siding
