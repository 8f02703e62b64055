// Agents that are away for a moment in the middle of a preemption.
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

// One job on each of two nodes; a request for both has had the first, while the second is still being dumped.
class AbsenceTest : public EngineTest {
 protected:
  AbsenceTest() {
    AddNodes({"a", "b"});
    first_ = Submit(Batch(1, {Method::kCheckpoint}));
    second_ = Submit(Batch(1, {Method::kCheckpoint}));
    Settle();
    cluster_.slow_dump = {"b"};
    request_ = Submit(OnDemand(2, 100s), kBob);
    Settle();
    EXPECT_EQ(State(first_), JobState::kParked);
    EXPECT_EQ(State(second_), JobState::kDumping);
  }
  size_t Plans() { return Job(request_).plans.size(); }

  JobId first_, second_, request_;
};

TEST_F(AbsenceTest, WhatWasReleasedStaysTheRequests) {
  cluster_.Disconnect("b");
  Settle(5);
  EXPECT_EQ(State(first_), JobState::kParked);
  EXPECT_EQ(State(second_), JobState::kDumping);
  EXPECT_EQ(Plans(), 1u);
}

TEST_F(AbsenceTest, TheRequestGoesOnWithItsPlanWhenTheAgentIsBack) {
  cluster_.Disconnect("b");
  Settle(5);
  cluster_.slow_dump.clear();
  cluster_.Restart("b");
  Settle(10);
  EXPECT_EQ(State(request_), JobState::kRunning);
  EXPECT_EQ(Job(first_).incarnation, 1);
  EXPECT_EQ(Plans(), 1u);
}

TEST_F(AbsenceTest, AnAgentThatStaysAwayIsPlannedWithout) {
  cluster_.Disconnect("b");
  Settle(15);
  EXPECT_GT(Plans(), 1u);
  EXPECT_EQ(State(first_), JobState::kRunning);
}

TEST_F(AbsenceTest, WhereThereIsNoTimeItIsPlannedWithoutSooner) {
  ASSERT_TRUE(engine_->Kill(kBob, request_).ok());
  Settle();
  request_ = Submit(OnDemand(2, 8s), kBob);
  cluster_.Disconnect("b");
  Settle(3);
  EXPECT_GT(Plans(), 1u);
}

TEST_F(AbsenceTest, ARestartedControllerWaitsForItsAgentsToDial) {
  StartController();
  cluster_.Connect("a");
  Settle(5);
  EXPECT_EQ(State(first_), JobState::kParked);
  EXPECT_EQ(Plans(), 1u);
}

TEST_F(AbsenceTest, AlsoForOneWhereAnImageIsToBeDeleted) {
  ASSERT_TRUE(engine_->Kill(kBob, request_).ok());
  cluster_.slow_dump.clear();
  Settle(10);
  ASSERT_TRUE(engine_->Checkpoint(kAda, second_, Tier::kShared).ok());
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, second_, Tier::kShared).ok());
  Settle();
  ASSERT_EQ(Job(second_).checkpoints.size(), 2u);
  ASSERT_TRUE(engine_->DeleteCheckpoint(kAda, Job(second_).checkpoints.front()).ok());
  cluster_.LoseQueue();
  cluster_.slow_dump = {"b"};
  request_ = Submit(OnDemand(2, 100s), kBob);
  Settle();
  ASSERT_EQ(State(first_), JobState::kParked);
  StartController();
  Settle(5);
  EXPECT_EQ(State(first_), JobState::kParked);
  EXPECT_EQ(Plans(), 1u);
}

}  // namespace
}  // namespace siding
