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

TEST(ThrottleTest, TheFirstTimeIsNeverPutOff) { EXPECT_TRUE(Throttle().Allows(kStart)); }

TEST(ThrottleTest, WhatIsQuickMayBeDoneAgainAtOnce) { EXPECT_TRUE(After(1ms).Allows(kStart)); }

TEST(ThrottleTest, WhatTakesLongIsPutOff) {
  EXPECT_FALSE(After(20ms).Allows(kStart));
  EXPECT_FALSE(After(20ms).Allows(kStart + 59ms));
}

TEST(ThrottleTest, WhatTakesLongMayBeginAgainAfterThreeTimesAsLong) {
  EXPECT_TRUE(After(20ms).Allows(kStart + 60ms));
}

TEST(ThrottleTest, AClockThatWasSetBackPutsNothingOff) { EXPECT_TRUE(After(20ms).Allows(kStart - 1h)); }

}  // namespace
}  // namespace siding
