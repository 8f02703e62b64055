#include "controller/engine/throttle.h"

#include "gtest/gtest.h"

namespace siding {
namespace {

using namespace std::chrono_literals;

constexpr Time kStart = Time{} + 1h;

Throttle After(Duration took) {
  Throttle pace;
  pace.Finished(kStart - took, kStart);
  return pace;
}

TEST(PaceTest, TheFirstTimeIsNeverPutOff) { EXPECT_TRUE(Throttle().MayBegin(kStart)); }

TEST(PaceTest, WhatIsQuickMayBeDoneAgainAtOnce) { EXPECT_TRUE(After(1ms).MayBegin(kStart)); }

TEST(PaceTest, WhatTakesLongIsPutOff) {
  EXPECT_FALSE(After(20ms).MayBegin(kStart));
  EXPECT_FALSE(After(20ms).MayBegin(kStart + 59ms));
}

TEST(PaceTest, WhatTakesLongMayBeginAgainAfterThreeTimesAsLong) {
  EXPECT_TRUE(After(20ms).MayBegin(kStart + 60ms));
}

TEST(PaceTest, AClockThatWasSetBackPutsNothingOff) { EXPECT_TRUE(After(20ms).MayBegin(kStart - 1h)); }

}  // namespace
}  // namespace siding
