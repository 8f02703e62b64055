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

class FullTierBehindRam : public GpuEngineTest {
 protected:
  // Its nodes are the request's, and it is to be dumped to the shared tier, which does not take its image.
  FullTierBehindRam() {
    cluster_.shared_bytes_per_second = 2e9;
    cluster_.Heartbeat("n1");
    cluster_.fail_shared = {"n1"};
    victim_ = Victim();
  }
  void SettleWithHeartbeats(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      cluster_.Heartbeat("n1");
      Settle(1);
    }
  }
  JobId victim_;
};

TEST_F(FullTierBehindRam, TheImageGoesToTheOtherTier) {
  Express();
  Settle();
  EXPECT_EQ(State(victim_), JobState::kParked);
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kDump).dump().tier(), v1::LOCAL);
}

TEST_F(FullTierBehindRam, OrItsJobWaitsInRamUntilThereIsRoom) {
  cluster_.local_disk_free = 0;
  cluster_.Heartbeat("n1");
  const JobId express = Express();
  SettleWithHeartbeats(20);
  EXPECT_EQ(State(victim_), JobState::kSuspended);
  EXPECT_EQ(State(express), JobState::kRunning);
  EXPECT_LT(cluster_.Count(v1::ToAgent::kDump), 7);
  cluster_.fail_shared.clear();
  SettleWithHeartbeats(20);
  EXPECT_EQ(State(victim_), JobState::kParked);
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

// Suspended, and what it had on its GPU cannot be put back.
class LostGpuStateTest : public GpuEngineTest {
 protected:
  JobId Loser(MethodSet methods, bool with_image) {
    const JobId job = Victim(methods);
    if (with_image) {
      EXPECT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
      Settle();
    }
    EXPECT_TRUE(engine_->Suspend(kAda, job).ok());
    Settle();
    cluster_.gpu_state_lost = "restore: CUDA_ERROR_NOT_SUPPORTED";
    EXPECT_TRUE(engine_->Resume(kAda, job).ok());
    Settle();
    return job;
  }
};

TEST_F(LostGpuStateTest, TheJobContinuesFromItsNewestImage) {
  const JobId job = Loser({Method::kSuspend, Method::kCheckpoint}, true);
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kRestore), 1);
  EXPECT_EQ(Job(job).gpu_states_lost, 1);
}

TEST_F(LostGpuStateTest, WithoutAnImageAJobThatMayBeKilledStartsFromItsBeginning) {
  const JobId job = Loser({Method::kSuspend, Method::kKill}, false);
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kLaunch), 2);
}

TEST_F(LostGpuStateTest, WithoutAnImageAnyOtherFailsWithTheReasonAndItsNodeIsFree) {
  const JobId job = Loser({Method::kSuspend}, false);
  EXPECT_EQ(State(job), JobState::kFailed);
  EXPECT_THAT(Job(job).reason, HasSubstr("CUDA_ERROR_NOT_SUPPORTED; it has no image"));
  Settle();
  cluster_.gpu_state_lost.clear();
  const JobId next = Submit(WithGpu(Batch()));
  Settle();
  EXPECT_EQ(State(next), JobState::kRunning);
}

// Between the order to end it and its end.
TEST_F(LostGpuStateTest, IfItsOnlyImageIsFoundDamagedThenItWaitsForAWord) {
  const JobId job = Victim({Method::kSuspend, Method::kCheckpoint});
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  Settle();
  cluster_.gpu_state_lost = "restore: CUDA_ERROR_NOT_SUPPORTED";
  ASSERT_TRUE(engine_->Resume(kAda, job).ok());
  StepUntil(job, JobState::kKilling);
  cluster_.FindDamaged("n1", "1.1");
  Settle(60);
  EXPECT_EQ(State(job), JobState::kParked);
  EXPECT_THAT(Job(job).reason, HasSubstr("sidingctl restart 1"));
}

TEST_F(LostGpuStateTest, ARestartedControllerKnowsIt) {
  const JobId job = Loser({Method::kSuspend}, false);
  StartController();
  EXPECT_EQ(State(job), JobState::kFailed);
  EXPECT_EQ(Job(job).gpu_states_lost, 1);
}

TEST_F(LostGpuStateTest, TheJobIsNotTakenOffItsGpusAgain) {
  Loser({Method::kSuspend, Method::kCheckpoint}, true);
  Settle();
  const auto plan = engine_->DryRun(kAda, WithGpu(OnDemand(1)));
  ASSERT_TRUE(plan.ok());
  EXPECT_FALSE(plan->feasible);
  EXPECT_THAT(plan->kept.at(0).reason, HasSubstr(kGpuStateWasLost));
}

TEST_F(GpuEngineTest, NodesThatAreBeingFreedByHandAreReckonedWith) {
  const JobId job = Victim({Method::kSuspend});
  cluster_.slow_suspend = {"n1"};
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  Settle();
  const auto plan = engine_->DryRun(kAda, WithGpu(OnDemand(1)));
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->feasible) << plan->refusal;
}

TEST_F(GpuEngineTest, AFrozenJobIsNotDumpedAgainAndAgain) {
  const JobId job = Victim();
  cluster_.fail_dump.insert("n1");
  Submit(WithGpu(OnDemand(1, 60s)));
  Settle(10);
  ASSERT_EQ(State(job), JobState::kSuspended);
  const int dumps = cluster_.Count(v1::ToAgent::kDump);
  clock_.Advance(11min);
  Settle();
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDump), dumps);
}

TEST_F(GpuEngineTest, WhereNoDeadlineCanBeMetADrainIsNotHurried) {
  policy_.when_late = WhenLate::kBestEffort;
  StartController();
  cluster_.Connect("n1");
  cluster_.gpu_lock_us = 50'000'000;
  Victim({Method::kSuspend});
  Submit(WithGpu(OnDemand(1, 20s)));
  Settle(1);
  ASSERT_EQ(cluster_.Count(v1::ToAgent::kSuspend), 1);
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kSuspend).suspend().lock_patience_us(), 0);
}

TEST_F(GpuEngineTest, AMethodThatFailedIsTriedAgainAfterAWhile) {
  const JobId job = Victim({Method::kSuspend});
  cluster_.fail_suspend = {"n1"};
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  Settle(10);
  ASSERT_THAT(Job(job).lost_methods[Method::kSuspend], HasSubstr("no freezer"));
  cluster_.fail_suspend.clear();
  clock_.Advance(10min);
  Settle();
  EXPECT_TRUE(Job(job).lost_methods.empty());
}

TEST_F(GpuEngineTest, ADrainWaitsForWorkOnTheGpuAsLongAsTheDeadlineAllows) {
  cluster_.gpu_lock_us = 2'000'000;
  const JobId victim = Victim({Method::kSuspend});
  Submit(WithGpu(OnDemand(1, 20s)));
  Settle(1);
  const Duration patience(cluster_.Last(v1::ToAgent::kSuspend).suspend().lock_patience_us());
  EXPECT_GT(patience, 15s);
  EXPECT_LT(patience, 20s);
  EXPECT_GE(Job(victim).current.predicted - Job(victim).state_since, 2s);
}

TEST_F(GpuEngineTest, ADrainThatNobodyHasADeadlineForIsNotHurried) {
  const JobId job = Victim({Method::kSuspend});
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  Settle(1);
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kSuspend).suspend().lock_patience_us(), 0);
}

TEST_F(GpuEngineTest, WhereOneVictimDoesNotComeOffItsGpuAnotherIsAskedInTime) {
  const JobId slow = Victim({Method::kSuspend});
  cluster_.AddNode("n2", 4, 1);
  JobSpec dearer = WithGpu(Batch(1, {Method::kKill}));
  const JobId other = Submit(dearer);
  Settle(20);  // to kill it costs something by now
  cluster_.slow_suspend = {"n1"};
  const Time deadline = clock_.Now() + 30s;
  const JobId express = Submit(WithGpu(OnDemand(1, 30s)));
  Settle(1);
  ASSERT_EQ(State(slow), JobState::kSuspending);
  ASSERT_EQ(State(other), JobState::kRunning);
  Settle(28);
  EXPECT_EQ(State(express), JobState::kRunning);
  EXPECT_LE(Job(express).first_started.value(), deadline);
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
