// What keeps the controller quick where there is much to look at.
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

// A look at the whole cluster takes its time.
class SlowPlatform final : public Platform {
 public:
  explicit SlowPlatform(FakeClock& clock) : clock_(clock) {}
  std::vector<Placement> Place(const std::vector<Waiting>& waiting, std::vector<NodeRoom> room) override {
    ++looks;
    clock_.Advance(50ms);
    return standalone_->Place(waiting, std::move(room));
  }
  int looks = 0;

 private:
  FakeClock& clock_;
  const std::unique_ptr<Platform> standalone_ = NewStandalonePlatform();
};

class LargeClusterTest : public EngineTest {
 protected:
  LargeClusterTest() {
    auto slow = std::make_unique<SlowPlatform>(clock_);
    slow_ = slow.get();
    platform_ = std::move(slow);
    StartController();
    AddNodes({"a", "b"});
  }
  SlowPlatform* slow_ = nullptr;
};

TEST_F(LargeClusterTest, ABurstOfSubmissionsCausesOneLook) {
  for (int i = 0; i < 10; ++i) Submit(Batch());
  EXPECT_EQ(slow_->looks, 1);
}

TEST_F(LargeClusterTest, ALookThatWasPutOffIsMadeUpForByTheNextTick) {
  Submit(Batch());
  const JobId second = Submit(Batch());
  ASSERT_EQ(State(second), JobState::kPending);
  clock_.Advance(200ms);
  engine_->Tick();
  EXPECT_EQ(State(second), JobState::kStarting);
}

TEST_F(LargeClusterTest, WhatAReportMeansForItsJobIsNotPutOff) {
  const JobId job = Submit(Batch());
  cluster_.Run();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(slow_->looks, 1);
}

TEST_F(LargeClusterTest, ADeadlineJobIsPlannedAndItsVictimOrderedAtOnce) {
  const JobId victim = Submit(Batch(2));
  cluster_.Run();
  Submit(OnDemand(2), kBob);
  EXPECT_EQ(State(victim), JobState::kSuspending);
}

TEST_F(EngineTest, AQueuedJobThatNoNodeCouldHoldDoesNotHoldBackTheRest) {
  AddNodes({"a"});
  JobSpec large = Batch();
  large.per_node.slots = 5;
  const JobId waits = Submit(large);
  const JobId runs = Submit(Batch());
  Settle();
  EXPECT_EQ(State(waits), JobState::kPending);
  EXPECT_EQ(State(runs), JobState::kRunning);
}

class FewerCheckpointsTest : public EngineTest {
 protected:
  JobId RunWithTwoCheckpoints() {
    AddNodes({"a"});
    const JobId job = Submit(Batch());
    Settle();
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
      Settle();
    }
    EXPECT_EQ(Job(job).checkpoints.size(), 2u);
    return job;
  }
};

TEST_F(FewerCheckpointsTest, ANewPolicyThatKeepsFewerCheckpointsCountsForThoseThereAre) {
  const JobId job = RunWithTwoCheckpoints();
  policy_.keep_checkpoints = 1;
  engine_->SetPolicy(policy_);
  engine_->Tick();
  EXPECT_EQ(Job(job).checkpoints.size(), 1u);
}

TEST_F(FewerCheckpointsTest, APolicyThatKeepsFewerCheckpointsCountsAfterARestart) {
  const JobId job = RunWithTwoCheckpoints();
  policy_.keep_checkpoints = 1;
  StartController();
  engine_->Tick();
  EXPECT_EQ(Job(job).checkpoints.size(), 1u);
}

}  // namespace
}  // namespace siding
