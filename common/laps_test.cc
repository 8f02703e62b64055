#include "common/laps.h"

#include "gmock/gmock.h"

namespace siding {
namespace {

using std::chrono::steady_clock;

// 3 ms, by the clock that is measured with.
void SpendTime() {
  const auto began = steady_clock::now();
  while (steady_clock::now() - began < std::chrono::milliseconds(3)) {
  }
}

TEST(LapsTest, WithoutStepsThereIsNothingToSay) {
  Laps laps;
  EXPECT_EQ(laps.ToString(), "");
  EXPECT_EQ(laps.Of("frozen"), Duration(0));
}

TEST(LapsTest, StepsStandInTheirOrder) {
  Laps laps;
  laps.End("frozen");
  laps.End("drained");
  EXPECT_THAT(laps.ToString(), testing::MatchesRegex("frozen [0-9.]+ ms, drained [0-9.]+ ms"));
}

TEST(LapsTest, TogetherTheyTakeAllOfTheTime) {
  const auto before = steady_clock::now();
  Laps laps;
  SpendTime();
  laps.End("one");
  laps.End("two");
  const auto all = std::chrono::duration_cast<Duration>(steady_clock::now() - before);
  EXPECT_GE(laps.Of("one"), std::chrono::milliseconds(3));
  EXPECT_LE(laps.Of("one") + laps.Of("two"), all);
}

TEST(LapsTest, AStepThatComesAgainIsAddedTo) {
  Laps laps;
  SpendTime();
  laps.End("waited");
  laps.End("held");
  SpendTime();
  laps.End("waited");
  EXPECT_GE(laps.Of("waited"), 2 * std::chrono::milliseconds(3));
  EXPECT_THAT(laps.ToString(), testing::MatchesRegex("waited [0-9.]+ ms, held [0-9.]+ ms"));
}

}  // namespace
}  // namespace siding
