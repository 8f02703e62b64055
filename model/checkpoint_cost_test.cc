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
  EXPECT_EQ(Expected(costs, Tier::kShared), (ExpectedCost{.stop = milliseconds(200),
                                                          .written = Bytes{1500},
                                                          .takes = seconds(3),
                                                          .longest = seconds(9),
                                                          .stop_due = milliseconds(200),
                                                          .written_due = Bytes{1500}}));
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

// What the time until the next image is to make up for. The first two stop their job for 4 s, others for 40
// ms.
class DueCost : public testing::Test {
 protected:
  ExpectedCost After(const std::vector<int64_t>& written, bool ran_on = true) const {
    std::vector<CheckpointCost> costs;
    for (const int64_t bytes : written) {
      CheckpointCost cost = Cost(costs.size() < 2 ? seconds(4) : milliseconds(40), seconds(5), bytes);
      cost.ran_on = ran_on;
      Learn(costs, cost);
    }
    return *Expected(costs, Tier::kShared);
  }
  // Bytes that have been written with so many images, beyond those that were made up for by then.
  double MostAhead(const std::vector<int64_t>& written) const {
    double ahead = 0, most = 0;
    for (size_t i = 0; i < written.size(); ++i) {
      ahead += static_cast<double>(written[i]);
      most = std::max(most, ahead);
      ahead -= static_cast<double>(
          After({written.begin(), written.begin() + static_cast<int64_t>(i) + 1}).written_due.value);
    }
    return most;
  }
};

TEST_F(DueCost, TheFirstIsMadeUpForInTenParts) {
  EXPECT_EQ(After({1000}).written_due, Bytes{100});
  EXPECT_EQ(After({1000}).stop_due, milliseconds(400));
}
TEST_F(DueCost, SoIsTheSecond) {
  EXPECT_EQ(After({1000, 200}).written_due, Bytes{120});
  EXPECT_EQ(After({1000, 200}).stop_due, milliseconds(800));
}
TEST_F(DueCost, FromTheThirdOnOthersAreTakenToBeAlike) {
  EXPECT_EQ(After({1000, 200, 100}).written_due, Bytes{200});
  EXPECT_EQ(After({1000, 200, 100}).stop_due, milliseconds(832));
  EXPECT_EQ(After({1000, 200, 100, 140}).written_due, Bytes{216});
}
// As in a tier over a network.
TEST_F(DueCost, TwoMayBeWhole) {
  EXPECT_EQ(After({1000, 1000}).written_due, Bytes{200});
  EXPECT_EQ(After({1000, 1000, 100}).written_due, Bytes{280});
}
TEST_F(DueCost, WhereAllAreWholeEachIsMadeUpForBeforeTheNext) {
  EXPECT_EQ(After({1000, 1000, 1000}).written_due, Bytes{1000});
}
TEST_F(DueCost, OfTenItIsTheMean) {
  std::vector<int64_t> written = {1000, 200};
  written.resize(10, 100);
  EXPECT_EQ(After(written).written_due, Bytes{200});
  EXPECT_EQ(After(written).written_due, After(written).written);
}
TEST_F(DueCost, OfAJobThatStandsStillItIsTheMean) {
  EXPECT_EQ(After({1000}, false).written_due, Bytes{1000});
  EXPECT_EQ(After({1000}, false).stop_due, seconds(4));
  EXPECT_EQ(After({1000, 600}, false).written_due, Bytes{800});
  EXPECT_EQ(After({1000, 600, 200}, false).written_due, Bytes{600});
}
TEST_F(DueCost, WholeImagesAreAheadOfTheirBandwidthByLessThanTwo) {
  EXPECT_EQ(MostAhead(std::vector<int64_t>(40, 1000)), 2700) << "one, and 1.7";
}
TEST_F(DueCost, WhatChangesIsMadeUpForByTheTwelfth) {
  std::vector<int64_t> written = {1000, 1000};
  written.resize(12, 100);
  EXPECT_LE(MostAhead(written), 2000);
  double due = 0, all = 0;
  for (int64_t i = 1; i <= 12; ++i) {
    due += static_cast<double>(After({written.begin(), written.begin() + i}).written_due.value);
    all += static_cast<double>(written[static_cast<size_t>(i) - 1]);
  }
  EXPECT_NEAR(due, all, 200);
}

// So a promise holds that counts with it.
TEST_F(DueCost, OfThoseThatFollowIsNoMoreThanTheMeanOrWhatIsDueNow) {
  for (const int64_t second : {100, 1000}) {
    for (const int64_t others : {int64_t{0}, int64_t{60}, second}) {
      std::vector<int64_t> written = {1000};
      Bytes least{1 << 30};
      while (written.size() < 15) {
        const ExpectedCost cost = After(written);
        EXPECT_LE(cost.written_due, least) << written.size();
        least = std::min(least, std::max(cost.written, cost.written_due));
        written.push_back(written.size() == 1 ? second : others);
      }
    }
  }
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
