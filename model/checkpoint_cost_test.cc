#include "model/checkpoint_cost.h"

#include <gtest/gtest.h>

namespace siding {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

CheckpointCost Cost(Duration stop, Duration takes, int64_t written, Tier tier = Tier::kShared) {
  return {tier, stop, takes, Bytes{written}};
}

TEST(CheckpointCost, OfAJobWithoutCheckpointsIsNotKnown) {
  EXPECT_EQ(Expected({}, Tier::kShared), std::nullopt);
}

TEST(CheckpointCost, OfOneTierSaysNothingOfTheOther) {
  EXPECT_EQ(Expected({Cost(seconds(1), seconds(2), 3, Tier::kLocal)}, Tier::kShared), std::nullopt);
}

TEST(CheckpointCost, IsOfTheLast) {
  std::vector<CheckpointCost> costs;
  Learn(costs, Cost(milliseconds(30), seconds(9), 100));
  Learn(costs, Cost(milliseconds(530), seconds(2), 4000));
  Learn(costs, Cost(milliseconds(40), seconds(3), 400));
  EXPECT_EQ(
      Expected(costs, Tier::kShared),
      (ExpectedCost{
          .stop = milliseconds(200), .written = Bytes{1500}, .takes = seconds(3), .longest = seconds(9)}));
}

TEST(CheckpointCost, CountsNoMoreAfterTenOthersOfItsTier) {
  std::vector<CheckpointCost> costs;
  Learn(costs, Cost(seconds(1), seconds(1), 1, Tier::kLocal));
  Learn(costs, Cost(seconds(60), seconds(60), 1 << 30));
  for (int i = 0; i < 10; ++i) Learn(costs, Cost(seconds(1), seconds(2), 3));
  EXPECT_EQ(Expected(costs, Tier::kShared)->stop, seconds(1));
  EXPECT_EQ(Expected(costs, Tier::kShared)->takes, seconds(2));
  EXPECT_EQ(Expected(costs, Tier::kShared)->written, Bytes{3});
  EXPECT_EQ(Expected(costs, Tier::kLocal)->takes, seconds(1));
}

class LongestCost : public testing::Test {
 protected:
  void LearnSmall(int times, Tier tier = Tier::kShared) {
    for (int i = 0; i < times; ++i) Learn(costs_, Cost(seconds(1), seconds(2), 3, tier));
  }
  Duration Longest(Tier tier = Tier::kShared) const { return Expected(costs_, tier)->longest; }

  std::vector<CheckpointCost> costs_;
};

TEST_F(LongestCost, IsKeptBesideTheLastTen) {
  LearnSmall(5);
  Learn(costs_, Cost(seconds(1), seconds(60), 1 << 30));
  LearnSmall(100);
  EXPECT_EQ(costs_.size(), 11u);
  EXPECT_EQ(Longest(), seconds(60));
  EXPECT_EQ(Expected(costs_, Tier::kShared)->written, Bytes{3});
}

TEST_F(LongestCost, GivesWayToALongerOne) {
  Learn(costs_, Cost(seconds(1), seconds(60), 1 << 30));
  LearnSmall(20);
  Learn(costs_, Cost(seconds(1), seconds(70), 1 << 30));
  LearnSmall(20);
  EXPECT_EQ(costs_.size(), 11u);
  EXPECT_EQ(Longest(), seconds(70));
}

// Once storage has stood still for minutes.
TEST_F(LongestCost, IsForgottenAfterAHundredOthers) {
  Learn(costs_, Cost(seconds(1), seconds(600), 1 << 30));
  LearnSmall(120);
  EXPECT_EQ(Longest(), seconds(2));
}

TEST_F(LongestCost, IsThatOfItsTier) {
  Learn(costs_, Cost(seconds(1), seconds(60), 1));
  for (int i = 0; i < 30; ++i) {
    LearnSmall(1);
    LearnSmall(1, Tier::kLocal);
  }
  EXPECT_EQ(costs_.size(), 22u);
  EXPECT_EQ(Longest(), seconds(60));
  EXPECT_EQ(Longest(Tier::kLocal), seconds(2));
}

}  // namespace
}  // namespace siding
