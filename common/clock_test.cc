#include "common/clock.h"

#include "gtest/gtest.h"

namespace siding {
namespace {

using namespace std::chrono_literals;

TEST(SteadyClock, BeginsWithTheTimeOfDay) {
  const FakeClock day(FromMicros(1'700'000'000'000'000));
  const SteadyClock clock(day);
  EXPECT_GE(clock.Now(), day.Now());
  EXPECT_LE(clock.Off(), 0s);
}

TEST(SteadyClock, GoesOnWhenTheTimeOfDayIsSet) {
  FakeClock day(FromMicros(1'700'000'000'000'000));
  const SteadyClock clock(day);
  const Time before = clock.Now();
  day.Advance(-1h);
  EXPECT_GE(clock.Now(), before);
  EXPECT_LE(clock.Off(), -1h);
  day.Advance(48h);
  EXPECT_LT(clock.Now(), day.Now());
}

}  // namespace
}  // namespace siding
