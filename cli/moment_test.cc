#include "cli/moment.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::cli {
namespace {

using testing::HasSubstr;

const absl::TimeZone kEast = absl::FixedTimeZone(2 * 3600);
const Time kNow = *ParseTime("2026-05-01T10:00:00Z", Time{});  // noon, there

std::string Coming(const std::string& text) {
  const auto time = ParseComing(text, kNow, kEast);
  return time.ok() ? FormatTime(*time) : std::string(time.status().message());
}
std::string Past(const std::string& text) {
  const auto time = ParsePast(text, kNow, kEast);
  return time.ok() ? FormatTime(*time) : std::string(time.status().message());
}

TEST(ParseComing, TakesWhatOthersTake) {
  EXPECT_EQ(Coming("+60s"), "2026-05-01T10:01:00.000Z");
  EXPECT_EQ(Coming("2026-05-01T12:30:00Z"), "2026-05-01T12:30:00.000Z");
}
TEST(ParseComing, AnHourIsTheNextOneInTheUsersOwnTime) {
  EXPECT_EQ(Coming("12:30"), "2026-05-01T10:30:00.000Z");
  EXPECT_EQ(Coming("12:30:15"), "2026-05-01T10:30:15.000Z");
  EXPECT_EQ(Coming("11:30"), "2026-05-02T09:30:00.000Z");
  EXPECT_EQ(Coming("12:00"), "2026-05-02T10:00:00.000Z");
}
TEST(ParseComing, ADateWithoutAZoneIsInTheUsersOwnTime) {
  EXPECT_EQ(Coming("2026-05-03T08:00"), "2026-05-03T06:00:00.000Z");
  EXPECT_EQ(Coming("2026-05-03T08:00:05"), "2026-05-03T06:00:05.000Z");
}
TEST(ParseComing, WhatIsNoneSaysWhatWasExpected) {
  for (const char* text :
       {"", "soon", "25:00", "12", "12:30 ", " 12:30", "12:30pm", "2026-05-03", "1969-12-31T08:00", "12:60"})
    EXPECT_THAT(Coming(text), HasSubstr("expected +DURATION")) << text;
}
TEST(ParsePast, ADurationIsAgo) { EXPECT_EQ(Past("2h"), "2026-05-01T08:00:00.000Z"); }
TEST(ParsePast, NothingIsBeforeAllTime) { EXPECT_EQ(Past("30000d"), "1970-01-01T00:00:00.000Z"); }
TEST(ParsePast, AnHourIsTheLastOne) {
  EXPECT_EQ(Past("11:30"), "2026-05-01T09:30:00.000Z");
  EXPECT_EQ(Past("12:30"), "2026-04-30T10:30:00.000Z");
}
TEST(ParsePast, WhatIsNoneSaysWhatWasExpected) {
  EXPECT_THAT(Past("+2h"), HasSubstr("expected a duration ago"));
}

}  // namespace
}  // namespace siding::cli
