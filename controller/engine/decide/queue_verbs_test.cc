// What users and operators change of jobs that wait or run: hold, release, update, and the start from the
// beginning of one that runs.
#include "controller/engine/engine_fixture.h"
#include "controller/engine/state/state_text.h"

namespace siding {
namespace {

using testing::StartsWith;

class VerbsTest : public EngineTest {
 protected:
  std::string Why(JobId id) {
    std::string why;
    engine_->Read([&](const ClusterState& state) { why = engine_->WhyWaits(state.jobs.at(id)); });
    return why;
  }
  std::string Text() {
    std::string text;
    engine_->Read([&](const ClusterState& s) { text = StateText(s); });
    return text;
  }
  std::vector<std::string> EventsOf(JobId job) {
    std::vector<std::string> texts;
    for (const Event& event : engine_->EventsAfter(0, 1000, Duration(0))) {
      if (event.job == job) texts.push_back(absl::StrCat(KindOf(event), ": ", Describe(event)));
    }
    return texts;
  }
  void StartSlurmsJob(const char* node, int64_t id) {
    v1::JobSpec spec;
    spec.set_name("train");
    spec.set_cluster_manager("slurm");
    spec.set_uid(kAda.uid);
    spec.mutable_per_node()->set_slots(4);
    spec.add_methods(v1::KILL);
    cluster_.StartManaged(node, spec, id, 1, "");
    Settle();
  }
  static std::string Message(const absl::Status& status) { return std::string(status.message()); }
};

// ---- Hold and release. ----

class HoldTest : public VerbsTest {
 protected:
  absl::Status Hold(JobId job, const Caller& by = kAda) { return engine_->Hold(by, job); }
  absl::Status Release(JobId job, const Caller& by = kAda) { return engine_->Release(by, job); }
  // There is one node, and another job has it.
  JobId Waiting() {
    AddNodes({"a"});
    running_ = Submit(Batch());
    const JobId job = Submit(Batch());
    Settle();
    return job;
  }
  void FreeTheNode() {
    ASSERT_TRUE(engine_->Kill(kAda, running_).ok());
    Settle();
  }
  // It made way for a request, and is in its image or, without checkpoint, frozen.
  JobId Preempted(MethodSet methods = {Method::kCheckpoint}) {
    AddNodes({"a"});
    const JobId job = Submit(Batch(1, methods));
    Settle();
    running_ = Submit(OnDemand(1));
    Settle();
    EXPECT_EQ(State(running_), JobState::kRunning);
    return job;
  }

  JobId running_;
};

TEST_F(HoldTest, AJobThatIsHeldIsNotStarted) {
  const JobId job = Waiting();
  ASSERT_TRUE(Hold(job).ok());
  FreeTheNode();
  EXPECT_EQ(State(job), JobState::kPending);
  EXPECT_EQ(Why(job), "is held by its user (sidingctl release 2)");
}

TEST_F(HoldTest, ReleasedItIs) {
  const JobId job = Waiting();
  ASSERT_TRUE(Hold(job).ok());
  FreeTheNode();
  ASSERT_TRUE(Release(job).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(HoldTest, ItHoldsUpNobody) {
  const JobId job = Waiting();
  const JobId next = Submit(Batch());
  ASSERT_TRUE(Hold(job).ok());
  FreeTheNode();
  EXPECT_EQ(State(next), JobState::kRunning);
}

TEST_F(HoldTest, AHeldJobThatMadeWayDoesNotComeBack) {
  const JobId job = Preempted();
  ASSERT_EQ(State(job), JobState::kParked);
  ASSERT_TRUE(Hold(job).ok());
  FreeTheNode();
  EXPECT_EQ(State(job), JobState::kParked);
  ASSERT_TRUE(Release(job).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(HoldTest, NorDoesOneThatWasFrozen) {
  const JobId job = Preempted({Method::kSuspend});
  ASSERT_EQ(State(job), JobState::kSuspended);
  ASSERT_TRUE(Hold(job).ok());
  FreeTheNode();
  EXPECT_EQ(State(job), JobState::kSuspended);
  EXPECT_EQ(Why(job), "is held by its user (sidingctl release 1)");
  EXPECT_EQ(Message(engine_->Resume(kAda, job)),
            "job 1 is suspended: it is held by its user; release it first");
  ASSERT_TRUE(Release(job).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(HoldTest, OneThatIsLeavingStaysAway) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  ASSERT_EQ(State(job), JobState::kDumping);
  ASSERT_TRUE(Hold(job).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kParked);
}

TEST_F(HoldTest, IfItRunsOnInsteadItIsNotHeldTheNextTime) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  cluster_.fail_dump = {"a"};
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  ASSERT_TRUE(Hold(job).ok());
  Settle(5);
  ASSERT_EQ(State(job), JobState::kRunning);
  EXPECT_FALSE(Job(job).held);
}

TEST_F(HoldTest, AJobThatRunsIsNotHeld) {
  Waiting();
  EXPECT_EQ(Message(Hold(running_)),
            "job 1 is running: only a job that waits is held; suspend freezes one that runs, vacate takes it "
            "off its nodes");
}

TEST_F(HoldTest, NorOneThatIsToRunOnAfterItsCheckpoint) {
  Waiting();
  ASSERT_TRUE(engine_->Checkpoint(kAda, running_, Tier::kShared).ok());
  EXPECT_THAT(Message(Hold(running_)), StartsWith("job 1 is dumping: only a job that waits is held"));
}

TEST_F(HoldTest, NorOneThatHasEnded) {
  const JobId job = Waiting();
  ASSERT_TRUE(Hold(job).ok());
  ASSERT_TRUE(engine_->Kill(kAda, job).ok());
  EXPECT_EQ(Message(Hold(job)), "job 2 is cancelled: it has ended");
  EXPECT_EQ(Message(Release(job)), "job 2 is cancelled: it is not held");
}

TEST_F(HoldTest, NorOneWithADeadline) {
  Waiting();
  const JobId express = Submit(OnDemand(1));
  EXPECT_THAT(Message(Hold(express)), HasSubstr("it has a deadline, and is not held"));
}

TEST_F(HoldTest, OfSlurmsJobsSlurmIsAsked) {
  AddNodes({"a"});
  StartSlurmsJob("a", 77);
  EXPECT_THAT(Message(Hold(JobId(77))), HasSubstr("it is slurm's: use scontrol hold 77"));
  EXPECT_THAT(Message(Release(JobId(77))), HasSubstr("it is slurm's: use scontrol release 77"));
  EXPECT_THAT(Message(engine_->Update(kAda, JobId(77), {.priority = 1, .walltime = {}})),
              HasSubstr("it is slurm's: use scontrol update JobId=77"));
  EXPECT_THAT(Message(engine_->Restart(kAda, JobId(77), true)),
              HasSubstr("it is slurm's: use scontrol requeue 77"));
}

TEST_F(HoldTest, WhatAnOperatorHoldsItsUserDoesNotRelease) {
  const JobId job = Waiting();
  ASSERT_TRUE(Hold(job, kRoot).ok());
  EXPECT_EQ(Why(job), "is held by an operator, root (sidingctl release 2)");
  const absl::Status refused = Release(job);
  EXPECT_TRUE(absl::IsPermissionDenied(refused));
  EXPECT_EQ(Message(refused), "job 2 is held by an operator, root: only operators release it");
  EXPECT_TRUE(Release(job, kRoot).ok());
  EXPECT_FALSE(Job(job).held);
}

TEST_F(HoldTest, AnOperatorsHoldIsTheStronger) {
  const JobId job = Waiting();
  ASSERT_TRUE(Hold(job).ok());
  ASSERT_TRUE(Hold(job, kRoot).ok());
  ASSERT_TRUE(Hold(job).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(Release(job)));
}

TEST_F(HoldTest, OnlyItsUserAndOperatorsHoldIt) {
  const JobId job = Waiting();
  EXPECT_TRUE(absl::IsNotFound(Hold(job, kBob)));
  EXPECT_TRUE(absl::IsNotFound(Release(job, kBob)));
}

TEST_F(HoldTest, WhatIsNotHeldIsNotReleased) {
  EXPECT_EQ(Message(Release(Waiting())), "job 2 is pending: it is not held");
}

TEST_F(HoldTest, ItIsInTheJournalAndTold) {
  const JobId job = Waiting();
  ASSERT_TRUE(Hold(job, kRoot).ok());
  ASSERT_TRUE(Hold(job, kRoot).ok());  // no event
  const std::string text = Text();
  EXPECT_THAT(EventsOf(job),
              testing::ElementsAre(StartsWith("submitted"),
                                   "held: held by root, an operator: it gets no nodes until it "
                                   "is released"));
  StartController();
  EXPECT_EQ(Text(), text);
  ASSERT_TRUE(Release(job, kRoot).ok());
  EXPECT_EQ(EventsOf(job).back(), "unheld: is not held any more, says root");
}

// ---- Update. ----

class UpdateTest : public VerbsTest {
 protected:
  absl::Status Priority(JobId job, int priority, const Caller& by = kAda) {
    return engine_->Update(by, job, {.priority = priority, .walltime = {}});
  }
  absl::Status Walltime(JobId job, Duration walltime, const Caller& by = kAda) {
    return engine_->Update(by, job, {.priority = {}, .walltime = walltime});
  }
  static JobSpec With(JobSpec spec, Duration walltime) {
    spec.walltime = walltime;
    if (spec.kind == JobKind::kOnDemand) spec.hold = walltime;
    return spec;
  }
  JobId Running(Duration walltime) {
    AddNodes({"a"});
    const JobId job = Submit(With(Batch(), walltime));
    Settle();
    return job;
  }
};

TEST_F(UpdateTest, ThePriorityIsThePlaceInTheQueue) {
  const JobId running = Running(0s), first = Submit(Batch()), second = Submit(Batch());
  ASSERT_TRUE(Priority(first, -1).ok());
  ASSERT_TRUE(engine_->Kill(kAda, running).ok());
  Settle();
  EXPECT_EQ(State(second), JobState::kRunning);
  EXPECT_EQ(Why(first), "waits for 1 node with 4 slots; none is free");
}

TEST_F(UpdateTest, UsersLowerItOperatorsSetIt) {
  Running(0s);
  const JobId job = Submit(Batch());
  const absl::Status refused = Priority(job, 1);
  EXPECT_TRUE(absl::IsPermissionDenied(refused));
  EXPECT_EQ(
      Message(refused),
      "priority: expected at most 0, what job 2 has, got 1: only operators raise it (the site's policy: "
      "users_raise_priority)");
  EXPECT_TRUE(Priority(job, 5, kRoot).ok());
  EXPECT_TRUE(Priority(job, 4).ok());
  EXPECT_EQ(Job(job).spec.priority, 4);
  EXPECT_TRUE(absl::IsNotFound(Priority(job, 0, kBob)));
}

TEST_F(UpdateTest, ThePolicyMayLetThemRaiseIt) {
  policy_.users_raise_priority = true;
  engine_->SetPolicy(policy_);
  Running(0s);
  const JobId job = Submit(Batch());
  EXPECT_TRUE(Priority(job, 1).ok());
  EXPECT_EQ(Job(job).spec.priority, 1);
}

TEST_F(UpdateTest, AWaitingJobGetsMoreTime) {
  Running(0s);
  const JobId job = Submit(With(Batch(), 60s));
  EXPECT_TRUE(Walltime(job, 120s).ok());
  EXPECT_EQ(Job(job).spec.walltime, 120s);
  EXPECT_TRUE(Walltime(job, 0s).ok());
  EXPECT_EQ(Job(job).spec.walltime, 0s);
}

TEST_F(UpdateTest, ARunningOneFromOperatorsOnly) {
  const JobId job = Running(60s);
  const absl::Status refused = Walltime(job, 120s);
  EXPECT_TRUE(absl::IsPermissionDenied(refused));
  EXPECT_EQ(Message(refused),
            "walltime: expected at most 1m00s, what job 1 has, got 2m00s: only operators give more to a job "
            "that has started");
  EXPECT_THAT(Message(Walltime(job, 0s)), HasSubstr("got none"));
  EXPECT_TRUE(Walltime(job, 120s, kRoot).ok());
  Settle(70);
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(UpdateTest, LessTimeIsTheUsersToGive) {
  const JobId job = Running(0s);
  ASSERT_TRUE(Walltime(job, 5s).ok());
  Settle(5);
  EXPECT_EQ(State(job), JobState::kFailed);
  EXPECT_EQ(Job(job).reason, "walltime of 5.00s is over");
}

// What it was promised, and its user's node-hours, were reckoned with it.
TEST_F(UpdateTest, ARequestThatWaitsGetsMoreFromOperatorsOnly) {
  AddNodes({"a"});
  Submit(Batch(1, {}));
  Settle();
  policy_.when_late = WhenLate::kQueue;
  engine_->SetPolicy(policy_);
  const JobId express = Submit(With(OnDemand(1), 60s));
  EXPECT_THAT(Message(Walltime(express, 120s)), HasSubstr("give more to a job that has a deadline"));
  EXPECT_TRUE(Walltime(express, 30s).ok());
  EXPECT_EQ(Job(express).spec.hold, 30s);
  EXPECT_TRUE(Walltime(express, 120s, kRoot).ok());
}

// Without a walltime it counts as the policy expects it to.
TEST_F(UpdateTest, ARequestWithoutAWalltimeGetsNoMoreThanItIsReckonedWith) {
  policy_.expected_hold = 60s;
  engine_->SetPolicy(policy_);
  AddNodes({"a"});
  const JobId express = Submit(OnDemand(1));
  Settle();
  EXPECT_THAT(Message(Walltime(express, 120s)), HasSubstr("walltime: expected at most 1m00s"));
  EXPECT_TRUE(Walltime(express, 50s).ok());
  EXPECT_THAT(Message(Walltime(express, 0s)), HasSubstr("walltime: expected at most 50.0s"));
  EXPECT_TRUE(Walltime(express, 120s, kRoot).ok());
}

TEST_F(UpdateTest, BothOrNothing) {
  const JobId job = Running(60s);
  EXPECT_FALSE(engine_->Update(kAda, job, {.priority = -1, .walltime = 120s}).ok());
  EXPECT_EQ(Job(job).spec.priority, 0);
}

TEST_F(UpdateTest, NotOfAJobThatHasEnded) {
  const JobId job = Running(0s);
  ASSERT_TRUE(engine_->Kill(kAda, job).ok());
  Settle();
  EXPECT_EQ(Message(Priority(job, -1)), "job 1 is cancelled: it has ended");
}

TEST_F(UpdateTest, PlansUseItAtOnce) {
  const JobId job = Running(0s);
  JobSpec request = OnDemand(1, 60s);
  ASSERT_EQ(engine_->DryRun(kAda, request)->steps.size(), 1U);
  ASSERT_TRUE(Walltime(job, 20s).ok());
  EXPECT_TRUE(engine_->DryRun(kAda, request)->steps.empty()) << "it will have ended";
}

TEST_F(UpdateTest, ARequestThatWaitedForTheEndIsPlannedAgain) {
  const JobId job = Running(20s);
  const JobId express = Submit(OnDemand(1, 60s));
  Settle(1);
  ASSERT_EQ(State(express), JobState::kPending);
  ASSERT_TRUE(Walltime(job, 0s, kRoot).ok());
  Settle(2);
  EXPECT_EQ(State(express), JobState::kRunning);
  EXPECT_EQ(State(job), JobState::kSuspended);
}

TEST_F(UpdateTest, ItIsInTheJournalAndTold) {
  Running(0s);
  const JobId job = Submit(Batch());
  ASSERT_TRUE(engine_->Update(kAda, job, {.priority = -1, .walltime = 120s}).ok());
  ASSERT_TRUE(Priority(job, -1).ok());  // no event
  const std::string text = Text();
  EXPECT_THAT(EventsOf(job),
              testing::ElementsAre(StartsWith("submitted"),
                                   "updated: has priority -1 and walltime 2m00s now, says ada"));
  StartController();
  EXPECT_EQ(Text(), text);
}

// ---- From the beginning, one that runs. ----

class RestartRunningTest : public VerbsTest {
 protected:
  absl::Status Restart(JobId job, const Caller& by = kAda) { return engine_->Restart(by, job, true); }
  JobId Running(MethodSet methods = {Method::kSuspend, Method::kCheckpoint, Method::kKill}) {
    AddNodes({"a"});
    const JobId job = Submit(Batch(1, methods));
    Settle();
    return job;
  }
  int Launches() const { return cluster_.Count(v1::ToAgent::kLaunch); }
};

TEST_F(RestartRunningTest, ItIsEndedAndStartsAgain) {
  const JobId job = Running();
  ASSERT_TRUE(Restart(job).ok());
  EXPECT_EQ(State(job), JobState::kKilling);
  EXPECT_TRUE(Restart(job).ok()) << "it was asked for already";
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Launches(), 2);
  EXPECT_EQ(Job(job).restarts, 1);
  EXPECT_EQ(Job(job).restart_reason, "asked for by ada");
}

TEST_F(RestartRunningTest, NotFromItsImage) {
  const JobId job = Running();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  ASSERT_TRUE(Restart(job).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Launches(), 2);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kRestore), 0);
}

// It would have its nodes for its whole walltime again, which is more than was reckoned with.
TEST_F(RestartRunningTest, ARequestByOperatorsOnly) {
  AddNodes({"a"});
  const JobId express = Submit(OnDemand(1));
  Settle();
  const absl::Status refused = Restart(express);
  EXPECT_TRUE(absl::IsPermissionDenied(refused));
  EXPECT_THAT(Message(refused), HasSubstr("job 1 has a deadline, and would have its whole walltime again"));
  EXPECT_TRUE(Restart(express, kRoot).ok());
  Settle();
  EXPECT_EQ(Launches(), 2);
}

TEST_F(RestartRunningTest, ASuspendedOneToo) {
  const JobId job = Running();
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  Settle();
  ASSERT_TRUE(Restart(job).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Launches(), 2);
}

TEST_F(RestartRunningTest, AndAParkedOneAsWithoutTheFlag) {
  const JobId job = Running();
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("a"), true).ok());
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle();
  ASSERT_EQ(State(job), JobState::kParked);
  ASSERT_TRUE(Restart(job).ok());
  EXPECT_EQ(State(job), JobState::kPending);
}

TEST_F(RestartRunningTest, OnlyIfTheJobAllowsIt) {
  const JobId job = Running({Method::kCheckpoint});
  EXPECT_THAT(Message(Restart(job)), HasSubstr("job 1 is running: it does not allow that (kill in "
                                               "--preemptible, or --on-node-failure=requeue)"));
  EXPECT_THAT(Message(Restart(job, kRoot)), HasSubstr("it does not allow that"));
}

TEST_F(RestartRunningTest, OneThatStartsOverAfterALossAllowsIt) {
  AddNodes({"a"});
  JobSpec spec = Batch(1, {Method::kCheckpoint});
  spec.on_node_failure = OnNodeFailure::kRequeue;
  const JobId job = Submit(spec);
  Settle();
  ASSERT_TRUE(Restart(job, kRoot).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Launches(), 2);
}

TEST_F(RestartRunningTest, ItHasItsWholeWalltimeAgain) {
  AddNodes({"a"});
  JobSpec spec = Batch();
  spec.walltime = 100s;
  const JobId job = Submit(spec);
  Settle(60);
  ASSERT_TRUE(Restart(job).ok());
  Settle(60);
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(RestartRunningTest, ANextControllerCarriesItOut) {
  const JobId job = Running();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  ASSERT_TRUE(Restart(job).ok());
  const std::string text = Text();
  cluster_.LoseQueue();
  StartController();
  EXPECT_EQ(Text(), text);
  cluster_.Connect("a");
  Settle(12);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Launches(), 2);
}

}  // namespace
}  // namespace siding
