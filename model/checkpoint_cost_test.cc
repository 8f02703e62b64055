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

TEST(CheckpointCost, IsForgottenAfterTenOthersOfItsTier) {
  std::vector<CheckpointCost> costs;
  Learn(costs, Cost(seconds(1), seconds(1), 1, Tier::kLocal));
  Learn(costs, Cost(seconds(60), seconds(60), 1 << 30));
  for (int i = 0; i < 10; ++i) Learn(costs, Cost(seconds(1), seconds(2), 3));
  EXPECT_EQ(costs.size(), 11u);
  EXPECT_EQ(Expected(costs, Tier::kShared)->takes, seconds(2));
  EXPECT_EQ(Expected(costs, Tier::kLocal)->takes, seconds(1));
}

}  // namespace
}  // namespace siding
