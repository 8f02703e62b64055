#include "absl/strings/str_cat.h"
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

TEST_F(EngineTest, ABatchJobRunsAndEnds) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  cluster_.Exit(job, 0, 0);
  EXPECT_EQ(State(job), JobState::kDone);
}

TEST_F(EngineTest, AGangFailsWhenOneRankFails) {
  AddNodes({"a", "b"});
  const JobId job = Submit(Batch(2));
  Settle();
  cluster_.Exit(job, 1, 3);
  EXPECT_EQ(State(job), JobState::kFailed);
  EXPECT_EQ(Job(job).exit_code, 3);
  EXPECT_THAT(Job(job).reason, HasSubstr("rank 1"));
}

TEST_F(EngineTest, TheNodesOfAFailedGangAreFreeOnlyWhenTheOtherRanksAreGone) {
  AddNodes({"a", "b"});
  const JobId gang = Submit(Batch(2));
  const JobId next = Submit(Batch(2));
  Settle();
  cluster_.Exit(gang, 1, 3);
  EXPECT_EQ(State(next), JobState::kPending);
  Settle();
  EXPECT_EQ(State(next), JobState::kRunning);
}

TEST_F(EngineTest, AJobThatANodeCouldNotStartIsTriedAgain) {
  AddNodes({"a"});
  cluster_.fail_start = {"a"};
  const JobId job = Submit(Batch());
  cluster_.Run();
  EXPECT_EQ(State(job), JobState::kPending);
  cluster_.fail_start.clear();
  Settle(12);
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(EngineTest, AJobThatEndsBeforeItIsKilledIsDoneAndNotStartedAgain) {
  AddNodes({"a"});
  const JobId victim = Submit(Batch(1, {Method::kKill}));
  Settle();
  Submit(OnDemand(1), kBob);
  EXPECT_EQ(State(victim), JobState::kKilling);
  cluster_.Exit(victim, 0, 0);
  EXPECT_EQ(State(victim), JobState::kDone);
}

TEST_F(EngineTest, AnImageThatWasNotNeededAnyMoreWhenItBecameVisibleIsDeleted) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  cluster_.Step();
  ASSERT_EQ(State(job), JobState::kCommitting);
  ASSERT_TRUE(engine_->Kill(kAda, job).ok());
  Settle();
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kDelete).delete_().checkpoint(), "1.1");
}

TEST_F(EngineTest, ADeadlineJobGetsItsNodesAndTheVictimComesBack) {
  AddNodes({"a", "b"});
  const JobId victim = Submit(Batch(2));
  Settle();
  const JobId express = Submit(OnDemand(2), kBob);
  Settle();
  EXPECT_EQ(State(express), JobState::kRunning);
  EXPECT_NE(State(victim), JobState::kRunning);
  EXPECT_EQ(Job(victim).preemptions, 1);
  cluster_.Exit(express, 0, 0);
  cluster_.Exit(express, 1, 0);
  Settle();
  EXPECT_EQ(State(victim), JobState::kRunning);
  EXPECT_EQ(Job(victim).displaced_by, JobId());
}

TEST_F(EngineTest, ACheckpointedVictimIsRestoredNotStartedAgain) {
  AddNodes({"a"});
  const JobId victim = Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  const JobId express = Submit(OnDemand(1), kBob);
  Settle();
  EXPECT_EQ(State(victim), JobState::kParked);
  cluster_.Exit(express, 0, 0);
  Settle();
  EXPECT_EQ(State(victim), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kRestore), 1);
}

TEST_F(EngineTest, AnImpossibleDeadlineIsRefusedAndNothingIsTouched) {
  AddNodes({"a"});
  const JobId batch = Submit(Batch(1, {}));
  Settle();
  const auto refused = engine_->Submit(kBob, OnDemand(1));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(State(batch), JobState::kRunning);
}

TEST_F(EngineTest, ADeadlineInThePastIsRefused) {
  AddNodes({"a"});
  EXPECT_EQ(engine_->Submit(kBob, OnDemand(1, -5s)).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(EngineTest, AVictimThatCannotBeDumpedRunsOnAndThePlanIsMadeAgain) {
  AddNodes({"a", "b"});
  const JobId stubborn = Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  clock_.Advance(1s);
  const JobId other = Submit(Batch(1, {Method::kKill}));
  Settle(600);  // a kill of the other costs more than a dump of the stubborn one
  cluster_.fail_dump = {Job(stubborn).nodes[0].value()};
  const JobId express = Submit(OnDemand(1), kBob);
  Settle();
  EXPECT_EQ(State(stubborn), JobState::kRunning);
  EXPECT_THAT(Job(stubborn).lost_methods[Method::kCheckpoint], HasSubstr("io_uring"));
  EXPECT_EQ(State(express), JobState::kRunning);
  EXPECT_EQ(State(other), JobState::kPending);
}

TEST_F(EngineTest, AGangOfWhichOneRankCannotBeDumpedRunsOnWhole) {
  AddNodes({"a", "b"});
  const JobId gang = Submit(Batch(2, {Method::kCheckpoint}));
  Settle();
  cluster_.fail_dump = {"b"};
  ASSERT_TRUE(engine_->Vacate(kAda, gang, Tier::kShared).ok());
  Settle();
  EXPECT_EQ(State(gang), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kCommit), 0);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kAbort), 1);
}

TEST_F(EngineTest, ADamagedImageIsPassedOverForTheOneBefore) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  cluster_.damaged = {"1.2"};
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).checkpoints, std::vector<CheckpointId>{CheckpointId("1.1")});
}

TEST_F(EngineTest, WithoutAnyGoodImageTheJobStartsAgain) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  cluster_.damaged = {"1.1"};
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kLaunch), 2);
}

TEST_F(EngineTest, ARestartedControllerCarriesOnFromEveryStep) {
  // The whole preemption, with the controller dying after 0, 1, 2, ... commands have been carried out.
  for (int steps = 0; steps < 12; ++steps) {
    SCOPED_TRACE(steps);
    journal_ = NewMemoryJournal();
    cluster_ = FakeCluster(clock_);
    StartController();
    AddNodes({"a", "b"});
    const JobId victim = Submit(Batch(2, {Method::kCheckpoint}));
    Settle();
    const JobId express = Submit(OnDemand(2), kBob);
    for (int i = 0; i < steps; ++i) {
      if (!cluster_.Step()) break;
    }
    cluster_.LoseQueue();
    StartController();
    cluster_.Connect("a");
    cluster_.Connect("b");
    Settle();
    ASSERT_EQ(State(express), JobState::kRunning);
    ASSERT_EQ(State(victim), JobState::kParked);
    cluster_.Exit(express, 0, 0);
    cluster_.Exit(express, 1, 0);
    Settle();
    ASSERT_EQ(State(victim), JobState::kRunning);
  }
}

TEST_F(EngineTest, AnAgentThatComesBackMidwayCarriesOn) {
  AddNodes({"a", "b"});
  const JobId victim = Submit(Batch(2, {Method::kCheckpoint}));
  Settle();
  const JobId express = Submit(OnDemand(2), kBob);
  cluster_.Disconnect("b");
  Settle();
  EXPECT_EQ(State(victim), JobState::kDumping);
  cluster_.Connect("b");
  Settle();
  EXPECT_EQ(State(express), JobState::kRunning);
  EXPECT_EQ(State(victim), JobState::kParked);
}

TEST_F(EngineTest, AFrozenJobKeepsItsPlaceInTheQueue) {
  AddNodes({"a"});
  const JobId victim = Submit(Batch(1, {Method::kSuspend}));
  Settle();
  const JobId express = Submit(OnDemand(1), kBob);
  const JobId later = Submit(Batch());
  Settle();
  EXPECT_EQ(State(victim), JobState::kSuspended);
  cluster_.Exit(express, 0, 0);
  Settle();
  EXPECT_EQ(State(victim), JobState::kRunning);
  EXPECT_EQ(State(later), JobState::kPending);
}

TEST_F(EngineTest, AJobWithATimerIsDumpedRatherThanFrozen) {
  AddNodes({"a"});
  cluster_.timer = "process 12 (timeout) has a POSIX timer on CLOCK_REALTIME";
  const JobId victim = Submit(Batch());
  Settle();
  const JobId express = Submit(OnDemand(1), kBob);
  EXPECT_THAT(Job(express).plans.back().steps.at(0).reason, HasSubstr("not suspended: " + cluster_.timer));
  Settle();
  EXPECT_EQ(State(victim), JobState::kParked);
  EXPECT_EQ(State(express), JobState::kRunning);
}

TEST_F(EngineTest, AJobWithATimerIsFrozenIfItMayNotBeDumped) {
  AddNodes({"a"});
  cluster_.timer = "process 12 (timeout) has a POSIX timer on CLOCK_REALTIME";
  const JobId victim = Submit(Batch(1, {Method::kSuspend, Method::kKill}));
  Settle();
  Submit(OnDemand(1), kBob);
  Settle();
  EXPECT_EQ(State(victim), JobState::kSuspended);
}

TEST_F(EngineTest, AnAdministratorMaySuspendAJobWithATimer) {
  AddNodes({"a"});
  cluster_.timer = "process 12 (timeout) has a POSIX timer on CLOCK_REALTIME";
  const JobId job = Submit(Batch());
  Settle();
  EXPECT_TRUE(engine_->Suspend(kRoot, job).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kSuspended);
}

TEST_F(EngineTest, AnAdministratorsSuspendLastsUntilTheirResume) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  ASSERT_TRUE(engine_->Suspend(kRoot, job).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kSuspended);
  ASSERT_TRUE(engine_->Resume(kRoot, job).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(EngineTest, MigrationEndsOnTheNamedNode) {
  AddNodes({"a", "b"});
  const JobId job = Submit(Batch());
  Settle();
  const NodeId to(Job(job).nodes[0].value() == "a" ? "b" : "a");
  ASSERT_TRUE(engine_->Migrate(kAda, job, {to}).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).nodes, std::vector<NodeId>{to});
}

TEST_F(EngineTest, UsersActOnTheirOwnJobsOnly) {
  AddNodes({"a"});
  const JobId job = Submit(Batch(), kAda);
  Settle();
  const absl::Status killed = engine_->Kill(kBob, job);
  EXPECT_EQ(killed.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(killed.message(),
            absl::StrCat("there is no job ", job.value(),
                         "; jobs that ended long ago are forgotten, and some numbers are left out"));
  EXPECT_EQ(engine_->Suspend(kBob, job).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(engine_->Cordon(kBob, NodeId("a"), true).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(engine_->Kill(kRoot, job).ok());
}

TEST_F(EngineTest, WhereJobsAreNotPrivateAUserIsToldWhoseTheyAre) {
  Policy policy;
  policy.private_jobs = false;
  engine_->SetPolicy(policy);
  const JobId job = Submit(Batch(), kAda);
  EXPECT_EQ(engine_->Kill(kBob, job).code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(EngineTest, AnothersCheckpointIsAnsweredLikeNone) {
  AddNodes({"a"});
  const JobId job = Submit(Batch(), kAda);
  Settle();
  const CheckpointId id = *engine_->Checkpoint(kAda, job, Tier::kShared);
  Settle();
  EXPECT_EQ(engine_->DeleteCheckpoint(kBob, id),
            absl::NotFoundError(absl::StrCat("there is no checkpoint ", id.value())));
  EXPECT_EQ(engine_->VerifyCheckpoint(kBob, id, {}).code(), absl::StatusCode::kNotFound);
}

TEST_F(EngineTest, ACordonedNodeTakesNothingNew) {
  AddNodes({"a"});
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("a"), true).ok());
  const JobId job = Submit(Batch());
  Settle();
  EXPECT_EQ(State(job), JobState::kPending);
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("a"), false).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(EngineTest, TwoRequestsAtOnceGetDifferentNodes) {
  AddNodes({"a", "b"});
  Submit(Batch());
  Submit(Batch());
  Settle();
  const JobId first = Submit(OnDemand(1), kBob);
  const JobId second = Submit(OnDemand(1), kBob);
  Settle();
  EXPECT_EQ(State(first), JobState::kRunning);
  EXPECT_EQ(State(second), JobState::kRunning);
  EXPECT_NE(Job(first).nodes, Job(second).nodes);
}

TEST_F(EngineTest, AJobThatIsJustComingBackCanBeAVictimAgain) {
  AddNodes({"a"});
  const JobId victim = Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  const JobId first = Submit(OnDemand(1), kBob);
  Settle();
  cluster_.Exit(first, 0, 0);  // the restore is ordered, and not yet carried out
  ASSERT_EQ(State(victim), JobState::kRestoring);
  const JobId second = Submit(OnDemand(1), kBob);
  Settle();
  EXPECT_EQ(State(second), JobState::kRunning);
  EXPECT_EQ(State(victim), JobState::kParked);
  EXPECT_LE(Job(second).plans.size(), 2u);
}

TEST_F(EngineTest, AKilledRequestGivesTheVictimBack) {
  AddNodes({"a"});
  const JobId victim = Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  const JobId express = Submit(OnDemand(1), kBob);
  ASSERT_TRUE(engine_->Kill(kBob, express).ok());
  Settle();
  EXPECT_EQ(State(express), JobState::kCancelled);
  EXPECT_EQ(State(victim), JobState::kRunning);
}

TEST_F(EngineTest, PeriodicCheckpointsAreTakenAndOldOnesGo) {
  policy_.keep_checkpoints = 2;
  StartController();
  AddNodes({"a"});
  JobSpec spec = Batch();
  spec.checkpoint_interval = 10s;
  const JobId job = Submit(spec);
  Settle(60);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_GE(Job(job).checkpoint_count, 4);
  EXPECT_EQ(Job(job).checkpoints.size(), 2u);
  EXPECT_GE(cluster_.Count(v1::ToAgent::kDelete), 2);
}

TEST_F(EngineTest, AnIntervalLeftToSidingFollowsFromCostAndFailures) {
  policy_.node_failures_per_year = 100;  // every 88 hours; an image of 1 s is then worth it every 13 minutes
  StartController();
  cluster_.memory = 1'000'000'000;
  cluster_.stopped = 1s;
  AddNodes({"a"});
  JobSpec spec = Batch();
  spec.auto_checkpoint_interval = true;
  const JobId job = Submit(spec);
  Settle();
  cluster_.Heartbeat("a");
  clock_.Advance(12min);
  Settle(5);
  EXPECT_EQ(Job(job).checkpoint_count, 0);
  clock_.Advance(90s);
  Settle(5);
  EXPECT_EQ(Job(job).checkpoint_count, 1);
}

TEST_F(EngineTest, AnIntervalIsNotLeftToSidingWhereThePolicyKnowsNoFailures) {
  JobSpec spec = Batch();
  spec.auto_checkpoint_interval = true;
  const auto submitted = engine_->Submit(kAda, spec);
  EXPECT_TRUE(absl::IsInvalidArgument(submitted.status()));
  EXPECT_THAT(std::string(submitted.status().message()), HasSubstr("node_failures_per_year"));
}

TEST_F(EngineTest, AProgramThatSavesItselfIsToldToOnScheduleAndStartsFromThat) {
  AddNodes({"a"});
  JobSpec spec = Batch(1, {Method::kApp});
  spec.app = AppMethod{.marker = "/saved"};
  spec.checkpoint_interval = 10s;
  const JobId job = Submit(spec);
  Settle(15);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kSave), 1);
  EXPECT_GT(Job(job).durable_at, *Job(job).first_started);
  cluster_.Vanish(job);
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_TRUE(cluster_.LastLaunch().restart_after_save());
}

TEST_F(EngineTest, AnImageThatIsNewerThanTheProgramsOwnSaveIsWhatItGoesOnFrom) {
  AddNodes({"a"});
  JobSpec spec = Batch(1, {Method::kApp, Method::kCheckpoint});
  spec.app = AppMethod{.marker = "/saved"};
  const JobId job = Submit(spec);
  Settle();
  cluster_.fail_dump = {"a"};  // so that the program saves itself
  const JobId first = Submit(OnDemand(1), kBob);
  Settle();
  cluster_.fail_dump.clear();
  cluster_.Exit(first, 0, 0);
  Settle();
  ASSERT_EQ(State(job), JobState::kRunning);
  ASSERT_EQ(cluster_.Count(v1::ToAgent::kSave), 1);
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kRestore), 1);
}

TEST_F(EngineTest, TasksOfAJobThatTheJournalDoesNotKnowAreLeftAlone) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  (void)job;
  journal_ = NewMemoryJournal();
  StartController();
  cluster_.Connect("a");
  Settle();
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kKill), 0);
}

TEST_F(EngineTest, TheirNumbersAreNotGivenToOthers) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  journal_ = NewMemoryJournal();
  StartController();
  EXPECT_EQ(Submit(Batch()), job);  // no agent has said anything
  journal_ = NewMemoryJournal();
  StartController();
  cluster_.Connect("a");
  Settle();
  const JobId other = Submit(Batch());
  Settle();
  EXPECT_GT(other, job);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kKill), 0);
  EXPECT_EQ(cluster_.Running(job), 1);
}

TEST_F(EngineTest, NothingIsDoneThatCouldNotBeRecorded) {
  auto* journal = new FullJournal;
  journal_.reset(journal);
  StartController();
  AddNodes({"a"});
  const JobId victim = Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  journal->full = true;
  EXPECT_TRUE(absl::IsUnavailable(engine_->Submit(kBob, OnDemand(1)).status()));
  Settle();
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDump), 0);
  // Started again when there is room, it knows of the job and of nothing else.
  journal->full = false;
  StartController();
  cluster_.Connect("a");
  Settle();
  EXPECT_EQ(State(victim), JobState::kRunning);
  EXPECT_NE(Submit(OnDemand(1), kBob), JobId());
}

TEST_F(EngineTest, AnAgentThatCouldNotBeTakenInIsNotTakenForConnected) {
  auto* journal = new FullJournal;
  journal_.reset(journal);
  StartController();
  AddNodes({"a"});
  Submit(Batch());
  Settle();
  cluster_.Disconnect("a");
  journal->full = true;
  v1::Hello without_the_job;
  EXPECT_TRUE(absl::IsUnavailable(engine_->OnConnected(NodeId("a"), without_the_job)));
  engine_->Read(
      [](const ClusterState& state) { EXPECT_FALSE(state.observed_nodes.at(NodeId("a")).connected); });
}

TEST_F(EngineTest, WatchersSeeEventsInOrder) {
  AddNodes({"a"});
  Submit(Batch());
  Settle();
  const std::vector<Event> events = engine_->EventsAfter(0, 100, 0s);
  ASSERT_GE(events.size(), 3u);
  EXPECT_EQ(KindOf(events[0]), "submitted");
  EXPECT_EQ(KindOf(events[1]), "place");
  EXPECT_EQ(KindOf(events[2]), "started");
}

// ---- Clocks. Deadlines are kept by the controller's. ----

TEST_F(EngineTest, ANodeWhoseClockIsAheadMakesNoRequestLate) {
  cluster_.clock_off = 3h;
  AddNodes({"a"});
  const JobId request = Submit(OnDemand(1));
  Settle();
  EXPECT_LE(Job(request).first_started, Job(request).spec.start_by);
}

TEST_F(EngineTest, ANodeWhoseClockIsBehindMakesNoRequestEarly) {
  cluster_.clock_off = -3h;
  AddNodes({"a"});
  const JobId request = Submit(OnDemand(1));
  Settle();
  EXPECT_GE(Job(request).first_started, Job(request).submitted);
}

TEST_F(EngineTest, AStartThatIsHeardOfLaterIsBelieved) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  const Time ordered = clock_.Now();
  clock_.Advance(5s);
  cluster_.clock_off = -2s;  // as if that were how long the report takes
  cluster_.Run();
  EXPECT_EQ(Job(job).first_started, ordered + 3s);
}

}  // namespace
}  // namespace siding
