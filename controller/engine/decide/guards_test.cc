// Guards and stays that end: requests that wait for them, and deadlines that are found rather than said.
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

using testing::ElementsAre;

class GuardsTest : public EngineTest {
 protected:
  template <typename Set>
  void SetPolicy(Set set) {
    Policy policy;
    set(policy);
    engine_->SetPolicy(policy);
  }
  JobSpec Staying(int nodes, Duration hold, Duration within = 60s) {
    JobSpec spec = OnDemand(nodes, within);
    spec.hold = hold;
    spec.kill_grace = 1s;
    return spec;
  }
  // Ends by its walltime, at the latest 3 s later.
  static JobSpec Limited(Duration walltime, MethodSet methods = {}) {
    JobSpec spec = Batch(1, methods);
    spec.walltime = walltime;
    spec.kill_grace = 1s;
    return spec;
  }
  // A job on the only node, whose image is being written as its user has asked.
  JobId BeingSaved() {
    AddNodes({"a"});
    const JobId job = Submit(Batch());
    Settle();
    EXPECT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
    StepUntil(job, JobState::kDumping);
    return job;
  }
  std::string WhyWaits(JobId job) {
    std::string why;
    engine_->Read([&](const ClusterState& state) { why = engine_->WhyWaits(state.jobs.at(job)); });
    return why;
  }
  std::string ErrorOf(const JobSpec& spec) {
    return std::string(engine_->Submit(kBob, spec).status().message());
  }
  Plan DryRun(const JobSpec& spec) { return *engine_->DryRun(kBob, spec); }
  size_t Jobs() {
    size_t jobs = 0;
    engine_->Read([&](const ClusterState& state) { jobs = state.jobs.size(); });
    return jobs;
  }
  void ExpectInTime(JobId request) {
    ASSERT_EQ(State(request), JobState::kRunning);
    EXPECT_LE(Job(request).first_started, Job(request).spec.start_by);
  }
};

TEST_F(GuardsTest, ARequestWaitsForADeadlineJobThatWillHaveEnded) {
  AddNodes({"a"});
  const JobId first = Submit(Staying(1, 6s));
  Settle();
  const JobId second = Submit(OnDemand(1, 60s), kBob);
  cluster_.Exit(first, 0, 0);
  Settle();
  ExpectInTime(second);
}

// It ran beside its image, and nothing but that was in the way.
TEST_F(GuardsTest, ARequestIsAdmittedWhileItsOnlyVictimIsBeingSaved) {
  const JobId batch = BeingSaved();
  const JobId express = Submit(OnDemand(1), kBob);
  EXPECT_EQ(State(batch), JobState::kDumping) << "it is left alone until then";
  Settle(10);
  EXPECT_EQ(Job(batch).checkpoints.size(), 1) << "the image that was being made";
  ExpectInTime(express);
}

TEST_F(GuardsTest, AVictimThatIsSavedSoonerThanPredictedLeavesSooner) {
  const JobId batch = BeingSaved();
  const JobId express = Submit(OnDemand(1), kBob);
  const Time begin = Job(express).plans.back().steps.at(0).begin;
  clock_.Advance(100ms);
  ASSERT_GT(begin, clock_.Now());
  StepUntil(batch, JobState::kRunning);
  engine_->Tick();
  cluster_.Run();
  ExpectInTime(express);
}

TEST_F(GuardsTest, OneThatIsSavedForLongerThanPredictedStillMakesWay) {
  const JobId batch = BeingSaved();
  const JobId express = Submit(OnDemand(1, 5min), kBob);
  for (int i = 0; i < 60; ++i) {
    clock_.Advance(1s);
    engine_->Tick();
  }
  ASSERT_EQ(State(batch), JobState::kDumping);
  EXPECT_EQ(State(express), JobState::kPending);
  Settle(70);
  ExpectInTime(express);
}

TEST_F(GuardsTest, ARequestWaitsForABatchJobThatWillHaveEnded) {
  AddNodes({"a"});
  const JobId batch = Submit(Limited(20s));
  Settle();
  const JobId express = Submit(OnDemand(1, 10min), kBob);
  EXPECT_EQ(WhyWaits(express), "waits for node a, until job 1 ends by its walltime at " +
                                   FormatTime(Job(batch).running_since + 20s + 1s + 2s));
  Settle(22);
  EXPECT_EQ(State(batch), JobState::kFailed);
  ExpectInTime(express);
}

// One request waits for the first job's end, another behind it for the end of the second.
TEST_F(GuardsTest, WhatIsHeldForLaterDoesNotTakeThePlaceOfAnEarlierPlan) {
  AddNodes({"a"});
  const auto of = [](JobSpec spec, int slots) {
    spec.per_node.slots = slots;
    return spec;
  };
  Submit(of(Limited(10s), 3));
  const JobId stays = Submit(of(Limited(60s), 1));
  Settle();
  const JobId sooner = Submit(of(OnDemand(1, 30s), 2), kBob);
  const JobId later = Submit(of(OnDemand(1, 100s), 2), kBob);
  Settle(20);
  ExpectInTime(sooner);
  EXPECT_EQ(State(later), JobState::kPending);
  EXPECT_EQ(State(stays), JobState::kRunning);
  Settle(60);
  ExpectInTime(later);
}

// On a, what is free is held for a request that waits for b.
TEST_F(GuardsTest, APlanForLaterDoesNotTakeWhatIsHeldForNow) {
  cluster_.AddNode("a");
  cluster_.AddNode("b", 2);
  const auto of = [](JobSpec spec, int slots) {
    spec.per_node.slots = slots;
    return spec;
  };
  const JobId on_b = Submit(of(Limited(20s), 2)), on_a = Submit(of(Limited(60s), 2));
  Settle();
  ASSERT_EQ(Job(on_b).nodes, std::vector{NodeId("b")});
  ASSERT_EQ(Job(on_a).nodes, std::vector{NodeId("a")});
  const JobId both = Submit(of(OnDemand(2, 40s), 2), kBob);
  const JobId later = Submit(of(OnDemand(1, 100s), 2), kBob);
  Settle(10);
  EXPECT_EQ(State(later), JobState::kPending);
  Settle(20);
  ExpectInTime(both);
  Settle(70);
  ExpectInTime(later);
}

TEST_F(GuardsTest, ABatchJobThatWillHaveEndedDoesNotMakeWay) {
  AddNodes({"a"});
  const JobId batch = Submit(Limited(20s, {Method::kSuspend, Method::kKill}));
  Settle();
  const JobId express = Submit(OnDemand(1, 10min), kBob);
  EXPECT_THAT(Job(express).plans.back().steps, testing::IsEmpty());
  Settle(22);
  EXPECT_EQ(Job(batch).preemptions, 0);
  ExpectInTime(express);
}

TEST_F(GuardsTest, ABatchJobThatEndsTooLateMakesWay) {
  AddNodes({"a"});
  const JobId batch = Submit(Limited(10min, {Method::kSuspend}));
  Settle();
  const JobId express = Submit(OnDemand(1, 60s), kBob);
  Settle();
  EXPECT_EQ(State(batch), JobState::kSuspended);
  ExpectInTime(express);
}

TEST_F(GuardsTest, ABatchJobIsWaitedForThroughACheckpointOnSchedule) {
  AddNodes({"a", "b"});
  JobSpec spec = Limited(20s, {Method::kCheckpoint});
  spec.checkpoint_interval = 5s;
  cluster_.slow_dump = {"a"};
  const JobId batch = Submit(spec);
  Settle();
  const JobId other = Submit(Batch());
  Settle();
  const JobId express = Submit(OnDemand(1), kBob);
  while (State(batch) != JobState::kDumping) Settle(1);
  Settle(2);
  EXPECT_EQ(State(other), JobState::kRunning);
  EXPECT_EQ(State(express), JobState::kPending);
}

TEST_F(GuardsTest, ABatchJobThatDoesNotEndInTimeIsNotWaitedFor) {
  AddNodes({"a", "b"});
  cluster_.slow_kill = {"a"};
  const JobId batch = Submit(Limited(10s));
  const JobId other = Submit(Batch(1, {Method::kSuspend}));
  Settle();
  const JobId express = Submit(OnDemand(1), kBob);
  Settle(8);
  ASSERT_EQ(State(batch), JobState::kKilling);
  EXPECT_EQ(State(other), JobState::kRunning);
  Settle(6);
  EXPECT_EQ(State(other), JobState::kSuspended);
  ExpectInTime(express);
}

TEST_F(GuardsTest, ABatchJobWhoseNodeDiesIsNotWaitedFor) {
  AddNodes({"a", "b"});
  Submit(Limited(20s));
  const JobId other = Submit(Batch(1, {Method::kSuspend}));
  Settle();
  const JobId express = Submit(OnDemand(1), kBob);
  Settle();
  EXPECT_EQ(State(other), JobState::kRunning);
  cluster_.Disconnect("a");
  Settle(20);
  EXPECT_EQ(State(other), JobState::kSuspended);
  ExpectInTime(express);
}

TEST_F(GuardsTest, ARestartedControllerWaitsForABatchJobToo) {
  AddNodes({"a"});
  const JobId batch = Submit(Limited(30s, {Method::kSuspend}));
  Settle();
  const JobId express = Submit(OnDemand(1), kBob);
  Settle();
  StartController();
  cluster_.Connect("a");
  Settle(36);
  EXPECT_EQ(Job(batch).preemptions, 0);
  ExpectInTime(express);
}

TEST_F(GuardsTest, ARequestWaitsForTheEndOfACooldown) {
  AddNodes({"a"});
  SetPolicy([](Policy& policy) { policy.cooldown = 20s; });
  const JobId victim = Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  const JobId first = Submit(OnDemand(1), kBob);
  Settle(6);
  cluster_.Exit(first, 0, 0);
  Settle(6);
  ASSERT_EQ(State(victim), JobState::kRunning);
  const Time cooled = *Job(victim).last_preempted + 20s;
  const JobId second = Submit(OnDemand(1, 15s), kBob);
  Settle(7);
  EXPECT_EQ(State(victim), JobState::kRunning);
  Settle(8);
  EXPECT_GE(*Job(victim).last_preempted, cooled);
  ExpectInTime(second);
}

TEST_F(GuardsTest, ARequestWaitsUntilAJobHasRunLongEnough) {
  AddNodes({"a"});
  SetPolicy([](Policy& policy) { policy.min_runtime = 3s; });
  const JobId victim = Submit(Batch());
  cluster_.Run();
  clock_.Advance(500ms);
  const JobId express = Submit(OnDemand(1, 8s), kBob);
  Settle(2);
  EXPECT_EQ(State(victim), JobState::kRunning);
  EXPECT_EQ(State(express), JobState::kPending);
  Settle(4);
  EXPECT_EQ(State(victim), JobState::kSuspended);
  ExpectInTime(express);
}

TEST_F(GuardsTest, AJobThatIsOnlyStartingHasNotRunYet) {
  AddNodes({"a"});
  SetPolicy([](Policy& policy) { policy.min_runtime = 3s; });
  const JobId victim = Submit(Batch());
  ASSERT_EQ(State(victim), JobState::kStarting);
  const JobId express = Submit(OnDemand(1, 12s), kBob);
  Settle(2);
  EXPECT_EQ(State(victim), JobState::kRunning);
  Settle(5);
  ExpectInTime(express);
}

TEST_F(GuardsTest, AStepThatIsDueDoesNotWaitForTheNextLookAtEverything) {
  AddNodes({"a"});
  SetPolicy([](Policy& policy) { policy.min_runtime = 3s; });
  const JobId victim = Submit(Batch());
  Settle(1);
  Submit(OnDemand(1, 8s), kBob);
  engine_->Tick();
  while (clock_.Now() < Job(victim).running_since + 3s) {
    clock_.Advance(100ms);
    engine_->Tick();
  }
  EXPECT_EQ(State(victim), JobState::kSuspending);
}

TEST_F(GuardsTest, AJobThatIsLeftAloneForLongerByNowDoesNotLeave) {
  AddNodes({"a"});
  SetPolicy([](Policy& policy) { policy.min_runtime = 3s; });
  const JobId victim = Submit(Batch());
  cluster_.Run();
  const JobId express = Submit(OnDemand(1, 8s), kBob);
  SetPolicy([](Policy& policy) { policy.min_runtime = 1h; });
  Settle(6);
  EXPECT_EQ(State(victim), JobState::kRunning);
  EXPECT_THAT(Job(express).plans.back().refusal, HasSubstr("late"));
}

TEST_F(GuardsTest, WhoStaysLongerThanTheySaidIsNotWaitedForIfAnotherCanMakeWay) {
  AddNodes({"a", "b"});
  const JobId first = Submit(Staying(2, 5s));
  Settle();
  ASSERT_EQ(State(first), JobState::kRunning);
  cluster_.Exit(first, 1, 0);
  Settle();
  const JobId victim = Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  ASSERT_EQ(State(victim), JobState::kRunning);
  const JobId second = Submit(OnDemand(1), kBob);
  Settle(5);
  EXPECT_EQ(State(first), JobState::kRunning);
  ExpectInTime(second);
}

TEST_F(GuardsTest, IfOneWhoIsWaitedForGoesSoonerTheOthersDoToo) {
  AddNodes({"a", "b"});
  const JobId first = Submit(Staying(1, 10min));
  const JobId victim = Submit(Batch());
  Settle();
  const JobId second = Submit(OnDemand(2, 30min), kBob);
  EXPECT_THAT(Job(second).plans.back().awaited, ElementsAre(first));
  Settle(5);
  EXPECT_EQ(State(victim), JobState::kRunning);
  cluster_.Exit(first, 0, 0);
  Settle();
  EXPECT_EQ(State(victim), JobState::kSuspended);
  EXPECT_EQ(State(second), JobState::kRunning);
}

TEST_F(GuardsTest, ARefusalNamesWhoIsInTheWayAndUntilWhen) {
  AddNodes({"a"});
  const JobId first = Submit(Staying(1, 10min));
  Settle();
  const Time end = Job(first).running_since + 10min + 1s + 2s;  // its grace, and until that is seen
  EXPECT_THAT(ErrorOf(OnDemand(1, 60s)), HasSubstr("in the way: job 1 until " + FormatTime(end)));
}

TEST_F(GuardsTest, WhatIsOnlyLateIsNotRefusedThoughNobodyKnowsHowLate) {
  for (const WhenLate when : {WhenLate::kBestEffort, WhenLate::kQueue}) {
    SCOPED_TRACE(ToString(when));
    AddNodes({"a"});
    SetPolicy([&](Policy& policy) { policy.when_late = when; });
    const JobId first = Submit(OnDemand(1));  // does not say how long it stays
    Settle();
    const JobId second = Submit(OnDemand(1, 5s), kBob);
    Settle();
    EXPECT_EQ(State(second), JobState::kPending);
    cluster_.Exit(first, 0, 0);
    Settle();
    EXPECT_EQ(State(second), JobState::kRunning);
    cluster_.Exit(second, 0, 0);
    Settle();
  }
}

TEST_F(GuardsTest, OneThatWaitsItsTurnIsPlannedWhenThereIsAWay) {
  AddNodes({"a", "b"});
  SetPolicy([](Policy& policy) { policy.when_late = WhenLate::kBestEffort; });
  const JobId first = Submit(OnDemand(1));  // does not say how long it stays
  const JobId victim = Submit(Batch());
  Settle();
  const JobId second = Submit(OnDemand(2), kBob);
  EXPECT_TRUE(Job(second).plans.back().queued);
  Settle(5);
  EXPECT_EQ(State(victim), JobState::kRunning);
  EXPECT_EQ(Job(second).plans.size(), 1u);
  cluster_.Exit(first, 0, 0);
  Settle();
  EXPECT_EQ(State(victim), JobState::kSuspended);
  EXPECT_EQ(State(second), JobState::kRunning);
}

TEST_F(GuardsTest, WhatNeedsANodeThatIsOnlyAwayIsNotRefused) {
  AddNodes({"a", "b"});
  SetPolicy([](Policy& policy) { policy.when_late = WhenLate::kBestEffort; });
  cluster_.Disconnect("b");
  const JobId express = Submit(OnDemand(2), kBob);
  Settle();
  EXPECT_EQ(State(express), JobState::kPending);
  cluster_.Connect("b");
  Settle();
  EXPECT_EQ(State(express), JobState::kRunning);
}

class EarliestTest : public GuardsTest {
 protected:
  // Takes 30 s to save itself.
  void AddBusyNode() {
    AddNodes({"a"});
    JobSpec spec = Batch(1, {Method::kApp});
    spec.app = AppMethod{.grace = 30s};
    Submit(spec);
    Settle();
  }
  JobSpec Earliest(int nodes = 1) {
    JobSpec spec = OnDemand(nodes);
    spec.start_by = kEarliest;
    return spec;
  }
};

TEST_F(EarliestTest, TheTimeThatARefusalNamesIsAcceptedAMomentLater) {
  AddBusyNode();
  JobSpec spec = OnDemand(1, 5s);
  spec.start_by = *DryRun(spec).earliest;
  clock_.Advance(1900ms);
  EXPECT_EQ(ErrorOf(spec), "");
}

TEST_F(EarliestTest, TheTimeThatARefusedSubmissionNamesIsTheSame) {
  AddBusyNode();
  const JobSpec spec = OnDemand(1, 5s);
  EXPECT_THAT(ErrorOf(spec), HasSubstr("the earliest start would be " + FormatTime(*DryRun(spec).earliest)));
}

TEST_F(EarliestTest, TheEarliestDeadlineIsFoundForTheSubmitter) {
  AddBusyNode();
  const JobId express = Submit(Earliest(), kBob);
  EXPECT_GT(Job(express).spec.start_by, clock_.Now() + 32s);
  EXPECT_LE(Job(express).spec.start_by, clock_.Now() + 36s);
  Settle();
  ExpectInTime(express);
}

TEST_F(EarliestTest, ItFollowsTheEndOfABatchJob) {
  AddNodes({"a"});
  const JobId batch = Submit(Limited(20s));
  Settle();
  const JobId express = Submit(Earliest(), kBob);
  const Time end = Job(batch).running_since + 20s + 1s + 2s;
  EXPECT_GE(Job(express).spec.start_by, end);
  EXPECT_LE(Job(express).spec.start_by, end + 5s);
}

TEST_F(EarliestTest, OnFreeNodesItIsAMomentFromNow) {
  AddNodes({"a"});
  const JobId express = Submit(Earliest(), kBob);
  EXPECT_LE(Job(express).spec.start_by, clock_.Now() + 5s);
  Settle();
  ExpectInTime(express);
}

TEST_F(EarliestTest, AnAnnouncedJobsEarliestDeadlineFollowsItsArrival) {
  AddNodes({"a"});
  JobSpec spec = Earliest();
  spec.not_before = clock_.Now() + 60s;
  const JobId express = Submit(spec, kBob);
  EXPECT_GT(Job(express).spec.start_by, spec.not_before);
  EXPECT_LE(Job(express).spec.start_by, spec.not_before + 5s);
}

TEST_F(EarliestTest, OneThatIsRefusedLeavesNothingBehind) {
  AddNodes({"a"});
  EXPECT_THAT(ErrorOf(Earliest(2)), HasSubstr("refused: needs 2 nodes, the cluster has 1"));
  EXPECT_EQ(Jobs(), 0u);
}

TEST_F(EarliestTest, ADryRunLeavesNothingBehind) {
  AddNodes({"a"});
  EXPECT_FALSE(DryRun(OnDemand(2)).feasible);
  EXPECT_EQ(Jobs(), 0u);
}

TEST_F(EarliestTest, WhereNobodyIsRefusedForBeingLateItIsLateIfNoTimeIsKnown) {
  AddNodes({"a"});
  SetPolicy([](Policy& policy) { policy.when_late = WhenLate::kBestEffort; });
  Submit(OnDemand(1));  // does not say how long it stays
  Settle();
  const JobId express = Submit(Earliest(), kBob);
  EXPECT_TRUE(Job(express).plans.back().queued);
}

}  // namespace
}  // namespace siding
