// Victims on GPUs: their nodes are free as soon as the GPUs are drained; the image is written behind that.
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

class GpuEngineTest : public EngineTest {
 protected:
  GpuEngineTest() {
    cluster_.gpu_memory = 1 << 20;
    cluster_.AddNode("n1", 4, 1);
  }
  static JobSpec WithGpu(JobSpec spec) {
    spec.per_node.gpus = 1;
    return spec;
  }
  // Running on n1's GPU.
  JobId Victim(MethodSet methods = {Method::kCheckpoint}) {
    const JobId victim = Submit(WithGpu(Batch(1, methods)));
    Settle();
    EXPECT_EQ(State(victim), JobState::kRunning);
    return victim;
  }
  JobId Express() { return Submit(WithGpu(OnDemand(1))); }
};

TEST_F(GpuEngineTest, TheRequestStartsWhileTheVictimsImageIsBeingWritten) {
  const JobId victim = Victim();
  cluster_.slow_dump.insert("n1");
  const JobId express = Express();
  Settle();
  EXPECT_EQ(State(express), JobState::kRunning);
  EXPECT_EQ(State(victim), JobState::kDumping);
}

TEST_F(GpuEngineTest, TheVictimIsSavedAndGoesOnFromItsImage) {
  const JobId victim = Victim();
  const JobId express = Express();
  Settle();
  EXPECT_EQ(State(victim), JobState::kParked);
  EXPECT_EQ(Job(victim).checkpoints.size(), 1);
  cluster_.Exit(express, 0, 0);
  Settle();
  EXPECT_EQ(State(victim), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kRestore), 1);
}

TEST_F(GpuEngineTest, AVictimThatCannotBeDumpedAfterAllGoesOnFromItsCopyInRam) {
  const JobId victim = Victim();
  cluster_.fail_dump.insert("n1");
  const JobId express = Express();
  Settle(10);
  EXPECT_EQ(State(victim), JobState::kSuspended);
  EXPECT_EQ(State(express), JobState::kRunning);
  cluster_.Exit(express, 0, 0);
  Settle();
  EXPECT_EQ(State(victim), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kRestore), 0);
}

TEST_F(GpuEngineTest, AnImageIsNotWaitedForWhenTheRequestIsOver) {
  const JobId victim = Victim();
  cluster_.slow_dump.insert("n1");
  const JobId express = Express();
  Settle();
  cluster_.Exit(express, 0, 0);
  Settle();
  EXPECT_EQ(State(victim), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kAbort), 1);
}

TEST_F(GpuEngineTest, AGpuIsNotGrantedBeforeItIsSeenFree) {
  Victim({Method::kSuspend});
  cluster_.keep_gpus.insert("n1");
  const JobId express = Express();
  Settle();
  EXPECT_GE(cluster_.Count(v1::ToAgent::kSuspend), 1);
  EXPECT_EQ(State(express), JobState::kPending);
}

TEST_F(GpuEngineTest, ASuspendedJobGivesItsGpuToARequest) {
  const JobId victim = Victim({Method::kSuspend});
  const JobId express = Express();
  Settle();
  EXPECT_EQ(State(victim), JobState::kSuspended);
  EXPECT_EQ(State(express), JobState::kRunning);
}

TEST_F(GpuEngineTest, WhereRamDoesNotSufficeTheImageIsWrittenFirst) {
  cluster_.gpu_memory = 5LL << 30;  // the node has 8
  Victim();
  cluster_.slow_dump.insert("n1");
  JobSpec spec = WithGpu(OnDemand(1));
  spec.per_node.memory = Bytes{4LL << 30};
  const JobId express = Submit(spec);
  Settle();
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kSuspend), 0);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDump), 1);
  EXPECT_EQ(State(express), JobState::kPending);
}

// The GPU is what a frozen job waits for, even where there are slots to spare.
TEST_F(GpuEngineTest, AFrozenVictimDoesNotComeBackWhileTheRequestHasItsGpu) {
  JobSpec spec = WithGpu(Batch(1, {Method::kSuspend}));
  spec.per_node.slots = 1;
  const JobId victim = Submit(spec);
  Settle();
  spec = WithGpu(OnDemand(1));
  spec.per_node.slots = 1;
  const JobId express = Submit(spec);
  Settle();
  EXPECT_EQ(State(express), JobState::kRunning);
  EXPECT_EQ(State(victim), JobState::kSuspended);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kResume), 0);
}

TEST_F(GpuEngineTest, AnImageThatFoundNoGpuIsNotCalledDamaged) {
  const JobId victim = Victim();
  const JobId express = Express();
  Settle();
  cluster_.no_gpu = true;
  cluster_.Exit(express, 0, 0);
  Settle(60);
  EXPECT_EQ(Job(victim).checkpoints.size(), 1);
  EXPECT_LE(cluster_.Count(v1::ToAgent::kRestore), 8);  // not again and again at once
  cluster_.no_gpu = false;
  Settle(15);
  EXPECT_EQ(State(victim), JobState::kRunning);
}

TEST_F(GpuEngineTest, AFrozenJobThatEndsAfterAllHasEnded) {
  const JobId victim = Victim({Method::kSuspend});
  Express();
  Settle();
  cluster_.ExitFrozen(victim);
  Settle();
  EXPECT_EQ(State(victim), JobState::kDone);
}

TEST_F(GpuEngineTest, AJobThatCannotBeDrainedIsNoVictimAndThePlanSaysWhy) {
  cluster_.cannot_drain = "process 7 uses managed memory";
  Victim({Method::kSuspend, Method::kCheckpoint});
  const auto plan = engine_->DryRun(kAda, WithGpu(OnDemand(1)));
  ASSERT_TRUE(plan.ok());
  EXPECT_FALSE(plan->feasible);
  EXPECT_THAT(plan->kept.at(0).reason, HasSubstr("managed memory"));
}

TEST_F(GpuEngineTest, ARestartedControllerWaitsForTheImageAsBefore) {
  const JobId victim = Victim();
  cluster_.slow_dump.insert("n1");
  const JobId express = Express();
  Settle();
  StartController();
  cluster_.slow_dump.clear();
  cluster_.Connect("n1");
  Settle();
  EXPECT_EQ(State(express), JobState::kRunning);
  EXPECT_EQ(State(victim), JobState::kDumping);
  cluster_.Exit(express, 0, 0);
  Settle();
  EXPECT_EQ(State(victim), JobState::kRunning);
}

}  // namespace
}  // namespace siding
