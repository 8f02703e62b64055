// Ranks of a job that keeps its connections are let into one network when all of them are there.
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

using testing::HasSubstr;

class GangNetworkTest : public EngineTest {
 protected:
  void Begin(bool keeps_connections = true) {
    StartController();
    AddNodes({"a", "b"});
    JobSpec spec = Batch(2);
    spec.keep_connections = keeps_connections;
    job_ = Submit(spec);
    Settle();
  }
  // The endpoints that a rank knows of its incarnation.
  std::vector<int> Known(int rank, int incarnation = 1) const {
    std::vector<int> networks;
    const auto joined = cluster_.joined.find(TaskId{job_, incarnation, rank});
    if (joined == cluster_.joined.end()) return networks;
    for (const v1::GangEndpoint& one : joined->second.ranks()) networks.push_back(one.vni());
    return networks;
  }
  // How long the checkpoint takes that is ordered now.
  Duration Predicted() {
    EXPECT_TRUE(engine_->Checkpoint(kRoot, job_, Tier::kShared).ok());
    const Duration takes = Job(job_).current.predicted - Job(job_).ordered_at;
    Settle();
    EXPECT_EQ(State(job_), JobState::kRunning);
    return takes;
  }
  int Orders() const { return cluster_.Count(v1::ToAgent::kJoinNetwork); }

  JobId job_;
};

TEST_F(GangNetworkTest, EachRankIsToldWhereAllAre) {
  Begin();
  EXPECT_EQ(Known(0), (std::vector<int>{1, 2}));
  EXPECT_EQ(Known(1), (std::vector<int>{1, 2}));
  EXPECT_EQ(Orders(), 2);
  EXPECT_EQ(State(job_), JobState::kRunning);
}

TEST_F(GangNetworkTest, AnotherJobIsToldNothing) {
  StartController();
  AddNodes({"a", "b"});
  Submit(Batch(2));
  Settle();
  EXPECT_EQ(Orders(), 0);
}

TEST_F(GangNetworkTest, WhatIsNotDoneIsOrderedAgain) {
  cluster_.slow_join = {"b"};
  Begin();
  EXPECT_EQ(Known(1), std::vector<int>());
  EXPECT_EQ(State(job_), JobState::kStarting);
  cluster_.slow_join.clear();
  Settle(7);
  EXPECT_EQ(Known(1), (std::vector<int>{1, 2}));
}

TEST_F(GangNetworkTest, ANewControllerGoesOn) {
  cluster_.slow_join = {"a", "b"};
  Begin();
  cluster_.slow_join.clear();
  StartController();
  cluster_.Connect("a");
  cluster_.Connect("b");
  Settle();
  EXPECT_EQ(Known(0), (std::vector<int>{1, 2}));
}

TEST_F(GangNetworkTest, RestoredRanksAreToldOfTheirNewNetworks) {
  Begin();
  ASSERT_TRUE(engine_->Vacate(kRoot, job_, Tier::kShared).ok());
  Settle();
  ASSERT_EQ(State(job_), JobState::kRunning);
  EXPECT_EQ(Known(0, 2), (std::vector<int>{3, 4}));
  EXPECT_EQ(Known(1, 2), (std::vector<int>{3, 4}));
}

TEST_F(GangNetworkTest, NobodyIsLetInBeforeTheLastIsRestored) {
  Begin();
  cluster_.fail_restore = {"b"};
  ASSERT_TRUE(engine_->Vacate(kRoot, job_, Tier::kShared).ok());
  Settle();
  EXPECT_EQ(Known(0, 2), std::vector<int>());
}

TEST_F(GangNetworkTest, WhatAllOfItsRanksWaitedIsPartOfTheNextPrediction) {
  cluster_.waited = {{"a", 30s}, {"b", 70s}};  // "a" was the last to come
  Begin();
  const Duration first = Predicted();
  EXPECT_EQ(first - 50ms, Predicted() - 30s);
}

// They are stopped one by one when they leave.
TEST_F(GangNetworkTest, WhatOthersWaitedIsNot) {
  cluster_.waited = {{"a", 30s}, {"b", 70s}};
  Begin(/*keeps_connections=*/false);
  const Duration first = Predicted();
  EXPECT_EQ(first, Predicted());
}

TEST_F(GangNetworkTest, IsNotPromisedWhereANodeHasNone) {
  cluster_.no_networks = {"b"};
  StartController();
  AddNodes({"a", "b"});
  JobSpec spec = Batch(2);
  spec.keep_connections = true;
  const auto submitted = engine_->Submit(kAda, spec);
  ASSERT_FALSE(submitted.ok());
  EXPECT_THAT(std::string(submitted.status().message()),
              HasSubstr("connections: they cannot be kept on node b: its agent is of an earlier version"));
}

}  // namespace
}  // namespace siding
