// The plugin has readers of its own, since it may not link ours: they must agree.
#include "common/units.h"

#include "gtest/gtest.h"
#include "spank/options.h"

namespace siding {
namespace {

TEST(PluginUnits, DurationsAreReadAsEverywhereElse) {
  for (const char* text :
       {"90s", "1m30s", "2h",   "250ms", "1d",  "1.5h", "7us",  "3min",  ".5s",    "",    "90",
        "s",   "1x",    "1e3s", "-1s",   "+1s", "1s ",  "0x1s", "1..5s", "36501d", "inf", "1h-3m"}) {
    int64_t ours = -1;
    const auto theirs = ParseDuration(text);
    EXPECT_EQ(spank::ParseDuration(text, ours), theirs.ok()) << text;
    if (theirs.ok()) {
      EXPECT_EQ(ours, theirs->count()) << text;
    }
  }
}

TEST(PluginUnits, TimesAreReadAsEverywhereElse) {
  for (const char* text : {"2026-05-01T12:00:00Z", "2026-05-01T12:00:00.25Z", "2026-05-01T12:00:00+02:00",
                           "2026-05-01T12:00:00-11:30", "2026-05-01", "2026-05-01T12:00:00",
                           "2026-02-30T12:00:00Z", "2026-05-01T25:00:00Z", "tomorrow", "",
                           "2026-05-01T12:00:00Zulu", "2026-05-01T12:00:00+99:99", "1969-12-31T23:59:59Z",
                           "9999-12-31T23:59:59-01:00", "2026-05-01T12:00:00.Z", "2026-05-01T12:00:00+2"}) {
    int64_t ours = -1;
    const auto theirs = ParseTime(text, Time());
    EXPECT_EQ(spank::ParseTime(text, ours), theirs.ok()) << text;
    if (theirs.ok()) {
      EXPECT_EQ(ours, ToMicros(*theirs)) << text;
    }
  }
}

}  // namespace
}  // namespace siding
