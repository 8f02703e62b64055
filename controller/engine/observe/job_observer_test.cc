// What simulated worlds (tests/simulation) have found.
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

class Mishaps : public EngineTest {
 protected:
  std::string StateOf(const std::string& checkpoint) {
    std::string state;
    engine_->Read(
        [&](const ClusterState& s) { state = ToString(s.checkpoints.at(CheckpointId(checkpoint)).state); });
    return state;
  }
};

// ---- A checkpoint whose job leaves in the middle of it. ----

TEST_F(Mishaps, ACheckpointThatIsNotFinishedHasFailedWhenItsJobIsGone) {
  AddNodes({"a"});
  cluster_.slow_dump = {"a"};
  const JobId job = Submit(Batch());
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  ASSERT_TRUE(engine_->Kill(kAda, job).ok());
  Settle();
  EXPECT_EQ(StateOf("1.1"), "failed");
}

TEST_F(Mishaps, ImagesThatAreInPlaceAlreadyAreDeletedWhenTheOtherRanksNeverGetOne) {
  AddNodes({"a", "b"});
  const JobId job = Submit(Batch(2));
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  StepUntil(job, JobState::kCommitting);
  ASSERT_TRUE(cluster_.Step());  // the first rank's commit
  cluster_.LoseQueue();
  ASSERT_TRUE(engine_->Kill(kAda, job).ok());
  Settle(5);
  EXPECT_EQ(StateOf("1.1"), "gone");
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDelete), 2);
}

// The agent finds the task's processes gone when it is back, and asks the store why.
TEST_F(Mishaps, AnImageStaysUntilTheAgentThatMayHavePutItInItsPlaceIsBack) {
  AddNodes({"a", "b"});
  const JobId job = Submit(Batch());
  Settle();
  ASSERT_EQ(Job(job).nodes[0], NodeId("a"));
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  StepUntil(job, JobState::kCommitting);
  cluster_.Disconnect("a");
  cluster_.LoseQueue();
  StartController();
  cluster_.Connect("b");
  ASSERT_TRUE(engine_->Kill(kAda, job).ok());
  Settle(5);
  EXPECT_EQ(StateOf("1.1"), "deleted");
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDelete), 0);
  cluster_.Connect("a");
  Settle(5);
  EXPECT_EQ(State(job), JobState::kCancelled);
  EXPECT_EQ(StateOf("1.1"), "gone");
}

TEST_F(Mishaps, ImagesOfAJobThatIsBeingEndedStayUntilAllRanksAreGone) {
  AddNodes({"a", "b"});
  const JobId job = Submit(Batch(2));
  Settle();
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  StepUntil(job, JobState::kCommitting);
  ASSERT_TRUE(cluster_.Step());  // the first rank's commit
  cluster_.Disconnect("b");
  cluster_.LoseQueue();
  ASSERT_TRUE(engine_->Kill(kAda, job).ok());
  Settle(5);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDelete), 0);
  cluster_.Connect("b");
  Settle(5);
  EXPECT_EQ(State(job), JobState::kCancelled);
  EXPECT_EQ(StateOf("1.1"), "gone");
}

// ---- A rank that cannot record its commit: its node's state folder is full. ----

class FullNode : public Mishaps {
 protected:
  FullNode() { AddNodes({"a", "b"}); }
  JobId Start(int nodes, MethodSet methods = {Method::kCheckpoint, Method::kKill}) {
    const JobId job = Submit(Batch(nodes, methods));
    Settle();
    for (const NodeId& node : Job(job).nodes) nodes_.push_back(node.value());
    return job;
  }
  // As agents of an earlier version have them leave.
  void LeaveOneByOne() { cluster_.no_barriers = {nodes_.begin(), nodes_.end()}; }
  // It has left, and is back at once, for no other job wants its nodes.
  void ExpectRestored(JobId job) {
    EXPECT_EQ(State(job), JobState::kRunning);
    EXPECT_EQ(StateOf("1.1"), "good");
    EXPECT_EQ(Job(job).restarts, 0);
    EXPECT_EQ(cluster_.Count(v1::ToAgent::kRestore), 2);
  }
  std::vector<std::string> Notes() {
    std::vector<std::string> notes;
    const auto note = [&](const Event& event) {
      if (const auto* noted = std::get_if<Noted>(&event.body)) notes.push_back(noted->text);
    };
    EXPECT_TRUE(journal_->Replay(note).ok());
    return notes;
  }
  void ExpectNothingLost(JobId job, int nodes) {
    EXPECT_EQ(Job(job).restarts, 0);
    EXPECT_EQ(Job(job).incarnation, 1);
    EXPECT_EQ(Job(job).damaged_checkpoints, 0);
    EXPECT_EQ(cluster_.Count(v1::ToAgent::kLaunch), nodes);
  }

  std::vector<std::string> nodes_;  // the job's
};

TEST_F(FullNode, ItsDumpHasFailedAndTheJobRunsOn) {
  const JobId job = Start(1);
  cluster_.fail_commit = {nodes_[0]};
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle(10);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_THAT(Job(job).methods_back_at, testing::Contains(testing::Key(Method::kCheckpoint)));
  EXPECT_EQ(StateOf("1.1"), "gone");
  ExpectNothingLost(job, 1);
}

TEST_F(FullNode, AGangRunsOnAlsoTheRankThatHasAnImage) {
  const JobId job = Start(2);
  cluster_.fail_commit = {nodes_[1]};
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle(10);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(StateOf("1.1"), "gone");
  ExpectNothingLost(job, 2);
}

TEST_F(FullNode, AnImageOfBeforeStillCounts) {
  const JobId job = Start(1);
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  cluster_.fail_commit = {nodes_[0]};
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle(10);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(StateOf("1.1"), "good");
  ExpectNothingLost(job, 1);
}

TEST_F(FullNode, OneThatWasFrozenStaysFrozen) {
  const JobId job = Start(1, {Method::kSuspend, Method::kCheckpoint});
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  Settle();
  cluster_.fail_commit = {nodes_[0]};
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle(10);
  EXPECT_EQ(State(job), JobState::kSuspended);
  ExpectNothingLost(job, 1);
  ASSERT_TRUE(engine_->Resume(kAda, job).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(FullNode, ARankWhosePeerHasLeftIsDumpedAgainUntilThereIsRoom) {
  const JobId job = Start(2);
  LeaveOneByOne();
  cluster_.fail_commit = {nodes_[1]};
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle(60);
  EXPECT_EQ(State(job), JobState::kCommitting);
  EXPECT_LE(cluster_.Count(v1::ToAgent::kDump), 9) << "two, and those again with pauses";
  EXPECT_THAT(Notes(), testing::Contains(HasSubstr("No space left on device; it is dumped again")));
  cluster_.fail_commit.clear();
  Settle(60);
  ExpectRestored(job);
}

TEST_F(FullNode, OneThatIsHeldUntilThereIsRoomIsNotDumpedAgain) {
  const JobId job = Start(2);
  cluster_.slow_commit = {nodes_[1]};
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle(20);
  EXPECT_EQ(State(job), JobState::kCommitting);
  cluster_.slow_commit.clear();
  Settle(10);
  ExpectRestored(job);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDump), 2);
}

// Its peer is in an image that is of no use alone.
TEST_F(FullNode, ARankThatNeverGetsAnImageIsGivenUpAfterMinutes) {
  const JobId job = Start(2);
  LeaveOneByOne();
  cluster_.fail_commit = {nodes_[1]};
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle(400);
  EXPECT_EQ(Job(job).restarts, 1);
  EXPECT_EQ(Job(job).damaged_checkpoints, 0);
  EXPECT_EQ(StateOf("1.1"), "gone");
}

// They fail at different times: one that is dumped again would hold its commit while the other fails.
TEST_F(FullNode, AGangOfWhichNoRankCanCommitRunsOn) {
  const JobId job = Start(2);
  cluster_.fail_commit = {nodes_[0]};
  cluster_.slow_commit = {nodes_[1]};
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle(60);
  cluster_.fail_commit = {};
  cluster_.slow_commit = {nodes_[0], nodes_[1]};
  Settle(60);
  ASSERT_EQ(State(job), JobState::kCommitting);
  cluster_.fail_commit = {nodes_[1]};
  cluster_.slow_commit = {nodes_[0]};
  Settle(60);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(StateOf("1.1"), "gone");
  ExpectNothingLost(job, 2);
}

// The image of a rank that has run on in between would be of another moment.
TEST_F(FullNode, AGangThatRunsOnIsNotDumpedOneRankAfterAnother) {
  const JobId job = Start(2);
  cluster_.fail_commit = {nodes_[1]};
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle(10);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDump), 2);
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(FullNode, ARankThatFailsBecauseItsPeersHaveLeftDoesNotEndItsJob) {
  const JobId job = Start(2);
  LeaveOneByOne();
  cluster_.fail_commit = {nodes_[1]};
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle(60);
  ASSERT_EQ(State(job), JobState::kCommitting);
  cluster_.Exit(job, 1, 1);
  Settle(20);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).restarts, 1);
}

TEST_F(FullNode, AJobThatHasNotLeftHasNotMadeWay) {
  const JobId job = Start(2, {Method::kCheckpoint});
  cluster_.fail_commit = {nodes_[0], nodes_[1]};
  Submit(OnDemand(1), kBob);
  StepUntil(job, JobState::kCommitting);
  Settle(20);
  ASSERT_EQ(StateOf("1.1"), "gone");
  EXPECT_EQ(Job(job).preemptions, 0);
}

// ---- Nothing runs twice, or on what is not free. ----

TEST_F(Mishaps, AGangIsNotStartedAgainWhileARankOfItMayLiveOnANodeThatIsAway) {
  AddNodes({"a", "b", "c", "d"});
  const JobId job = Submit(Batch(2));
  Settle();
  ASSERT_EQ(Job(job).nodes[1], NodeId("b"));
  cluster_.Disconnect("b");
  cluster_.Vanish(job);
  Settle(20);
  EXPECT_EQ(State(job), JobState::kPending);
  cluster_.Connect("b");
  Settle(5);
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(Mishaps, ARestartedControllerStillKnowsWhereARankMayLive) {
  AddNodes({"a", "b", "c", "d"});
  const JobId job = Submit(Batch(2));
  Settle();
  cluster_.Disconnect("b");
  cluster_.Vanish(job);
  StartController();
  for (const char* node : {"a", "c", "d"}) cluster_.Connect(node);
  Settle(20);
  EXPECT_EQ(State(job), JobState::kPending);
}

TEST_F(Mishaps, AJobThatIsKilledAtItsStartHoldsItsNodesUntilItsAgentHasAnswered) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  ASSERT_TRUE(engine_->Kill(kAda, job).ok());
  EXPECT_EQ(State(job), JobState::kKilling);
  Settle();
  EXPECT_EQ(State(job), JobState::kCancelled);
}

TEST_F(Mishaps, ANodeToWhichAStartMayBeOnItsWayIsNotFree) {
  AddNodes({"a", "b"});
  Submit(Batch(2));
  const JobId second = Submit(Batch(1)), third = Submit(Batch(1));
  ASSERT_TRUE(cluster_.Step());  // the first rank's launch
  cluster_.LoseQueue();
  cluster_.Vanish(JobId(1));
  EXPECT_EQ(State(second), JobState::kStarting);  // where the first rank was
  EXPECT_EQ(State(third), JobState::kPending);
}

TEST_F(Mishaps, NorIsItFreeWhenTheJobHasFailedMeanwhile) {
  AddNodes({"a", "b"});
  const JobId gang = Submit(Batch(2));
  const JobId second = Submit(Batch(1)), third = Submit(Batch(1));
  ASSERT_TRUE(cluster_.Step());  // the first rank's launch
  cluster_.Exit(gang, 0, 1);
  ASSERT_EQ(State(gang), JobState::kFailed);
  EXPECT_EQ(State(second), JobState::kStarting);  // where the first rank was
  EXPECT_EQ(State(third), JobState::kPending);
  cluster_.LoseQueue();
  Settle();
  EXPECT_EQ(State(third), JobState::kRunning);
}

TEST_F(Mishaps, NorIsItFreeAfterTheJournalCouldNotBeWrittenForAWhile) {
  journal_ = std::make_unique<FullJournal>();
  StartController();
  AddNodes({"a", "b"});
  const JobId gang = Submit(Batch(2));
  const JobId second = Submit(Batch(1)), third = Submit(Batch(1));
  ASSERT_TRUE(cluster_.Step());  // the first rank's launch
  cluster_.Exit(gang, 0, 1);
  ASSERT_EQ(State(gang), JobState::kFailed);
  ASSERT_EQ(State(second), JobState::kStarting);
  auto& journal = static_cast<FullJournal&>(*journal_);
  journal.full = true;
  EXPECT_FALSE(engine_->Kill(kAda, second).ok());
  journal.full = false;
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(1s);
    engine_->Tick();
  }
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("a"), true).ok()) << "it can be written again";
  EXPECT_EQ(State(third), JobState::kPending);
  cluster_.LoseQueue();
  Settle(10);
  EXPECT_EQ(State(third), JobState::kRunning);
}

// A report waits for its turn to be written, while a heartbeat may say something newer.
TEST_F(Mishaps, AReportThatAHeartbeatHasOvertakenSaysNothing) {
  AddNodes({"a"});
  const JobId job = Submit(Batch(1, {Method::kSuspend}));
  Settle();
  const auto say = [&](v1::TaskPhase phase, int64_t version) {
    v1::FromAgent message;
    v1::TaskReport& report = *message.mutable_report();
    report.mutable_task()->set_job(job.value());
    report.mutable_task()->set_incarnation(1);
    report.set_phase(phase);
    report.set_version(version);
    engine_->OnMessage(NodeId("a"), message);
  };
  say(v1::RUNNING, 7);
  say(v1::SUSPENDED, 6);
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  EXPECT_EQ(State(job), JobState::kSuspending);
}

TEST_F(Mishaps, AJobIsNotResumedWhileARequestUsesItsNode) {
  AddNodes({"a"});
  const JobId job = Submit(Batch(1, {Method::kSuspend}));
  Settle();
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  Settle();
  const JobId express = Submit(OnDemand(1), kBob);
  Settle();
  ASSERT_EQ(State(express), JobState::kRunning);
  EXPECT_THAT(std::string(engine_->Resume(kAda, job).message()), HasSubstr("others use its nodes"));
  cluster_.Exit(express, 0, 0);
  Settle(5);
  EXPECT_TRUE(engine_->Resume(kAda, job).ok());
}

// ---- No job waits for ever. ----

TEST_F(Mishaps, AnOnDemandJobThatLeftItsNodesGoesOn) {
  AddNodes({"a"});
  const JobId express = Submit(OnDemand(1), kBob);
  Settle();
  ASSERT_TRUE(engine_->Vacate(kRoot, express, Tier::kShared).ok());
  Settle(5);
  EXPECT_EQ(State(express), JobState::kRunning);
  EXPECT_EQ(Job(express).incarnation, 2);
}

class Headroom : public Mishaps {
 protected:
  Headroom() {
    policy_.headroom_nodes = 1;
    StartController();
  }
};

TEST_F(Headroom, AJobThatNeedsTheNodesKeptFreeHoldsBackNobody) {
  AddNodes({"a", "b"});
  const JobId large = Submit(Batch(2));
  const JobId small = Submit(Batch(1));
  Settle();
  EXPECT_EQ(State(large), JobState::kPending);
  EXPECT_EQ(State(small), JobState::kRunning);
}

TEST_F(Headroom, ANodeIsNotKeptFreeFromTheJobWhoseImageLiesThere) {
  AddNodes({"a", "b"});
  const JobId job = Submit(Batch(1));
  Settle();
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kLocal).ok());
  Settle(5);
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(Mishaps, ARankThatFrozeAfterAllIsResumedBeforeItsProgramIsToldToSave) {
  AddNodes({"a"});
  JobSpec spec = Batch(1, {Method::kApp});
  spec.app.emplace();
  const JobId job = Submit(spec);
  Settle();
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  Settle();
  cluster_.fail_resume = {"a"};
  ASSERT_TRUE(engine_->Resume(kAda, job).ok());
  cluster_.Report(job, v1::RUNNING);  // as before
  ASSERT_EQ(State(job), JobState::kRunning);
  Submit(OnDemand(1), kBob);
  ASSERT_EQ(State(job), JobState::kSaving);
  cluster_.fail_resume.clear();
  Settle(10);
  EXPECT_EQ(State(job), JobState::kParked);
}

// ---- What is kept, and what is not. ----

TEST_F(Mishaps, TheImageOfARankThatEndedBehindItIsDeletedWithTheOthers) {
  AddNodes({"a", "b"});
  const JobId job = Submit(Batch(2));
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  StepUntil(job, JobState::kCommitting);
  ASSERT_TRUE(cluster_.Step());  // the first rank's commit
  cluster_.Exit(job, 0, 0);
  Settle();
  cluster_.Exit(job, 1, 0);
  Settle();
  EXPECT_EQ(StateOf("1.1"), "gone");
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDelete), 2);
}

TEST_F(Mishaps, ARankThatEndedAfterTheSaveIsStartedAgainWithTheOthers) {
  AddNodes({"a", "b"});
  JobSpec spec = Batch(2, {Method::kApp});
  spec.app.emplace().marker = "saved";
  spec.checkpoint_interval = 10s;
  const JobId job = Submit(spec);
  Settle(15);
  ASSERT_TRUE(Job(job).saved_at);
  cluster_.Exit(job, 0, 0);
  cluster_.Vanish(job);
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_TRUE(Job(job).exited.empty());
}

// ---- A program's own save from which it does not continue. ----

// A gang with an image from before its second rank ended, which saved itself later, to make way.
class SavedGang : public Mishaps {
 protected:
  SavedGang() {
    AddNodes({"a", "b"});
    JobSpec spec = Batch(2, {Method::kCheckpoint, Method::kApp});
    spec.app.emplace().marker = "saved";
    gang_ = Submit(spec);
    Settle();
    EXPECT_TRUE(engine_->Checkpoint(kAda, gang_, Tier::kShared).ok());
    Settle();
    cluster_.Exit(gang_, 1, 0);
    Settle();
    cluster_.fail_dump = {"a"};
    express_ = Submit(OnDemand(2), kBob);
    Settle(10);
    EXPECT_EQ(State(gang_), JobState::kParked);
    EXPECT_TRUE(Job(gang_).saved_at);
  }
  void ComeBack(int seconds) {
    for (int rank : {0, 1}) cluster_.Exit(express_, rank, 0);
    Settle(seconds);
  }
  JobId gang_, express_;
};

TEST_F(SavedGang, GoesOnFromItsOlderImageWithAllRanksOfIt) {
  cluster_.fail_restart = true;
  ComeBack(10);
  EXPECT_EQ(State(gang_), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kRestore), 2);
}

TEST_F(SavedGang, IsTriedLessAndLessOftenWhereOnlyNodesAreToBlame) {
  cluster_.fail_start = {"a", "b"};
  const int before = cluster_.Count(v1::ToAgent::kLaunch);
  ComeBack(60);
  EXPECT_LE(cluster_.Count(v1::ToAgent::kLaunch) - before, 8);
  cluster_.fail_start.clear();
  Settle(65);
  EXPECT_EQ(State(gang_), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kRestore), 0);
}

// ---- A failure that passes. ----

TEST_F(Mishaps, ADumpThatFailedAndIsTriedAgainIsNotedOnce) {
  AddNodes({"a"});
  const JobId job = Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  cluster_.fail_dump = {"a"};
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  ASSERT_TRUE(cluster_.Step());
  cluster_.Heartbeat("a");
  cluster_.fail_dump.clear();
  Settle();
  EXPECT_EQ(StateOf("1.1"), "good");
  int notes = 0;
  for (const Event& event : engine_->EventsAfter(0, 100, 0s)) notes += KindOf(event) == "note";
  EXPECT_EQ(notes, 1);
}

TEST_F(Mishaps, AFreezeThatFailsOnceIsTriedAgain) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  cluster_.fail_suspend = {"a"};
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  ASSERT_TRUE(cluster_.Step());
  cluster_.fail_suspend.clear();
  Settle();
  EXPECT_EQ(State(job), JobState::kSuspended);
  EXPECT_TRUE(Job(job).lost_methods.empty());
}

TEST_F(Mishaps, AJobThatCannotGoOnStaysFrozenAndSaysWhy) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  Settle();
  cluster_.fail_resume = {"a"};
  ASSERT_TRUE(engine_->Resume(kAda, job).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kSuspended);
  EXPECT_THAT(Job(job).reason, HasSubstr("rank 0 on a: it does not thaw"));
  EXPECT_TRUE(Job(job).in_ram);
}

// One rank cannot go on, and the other is about to.
class HalfFrozen : public Mishaps {
 protected:
  HalfFrozen() {
    AddNodes({"a", "b"});
    job_ = Submit(Batch(2, {Method::kSuspend}));
    Settle();
    EXPECT_TRUE(engine_->Suspend(kAda, job_).ok());
    Settle();
    cluster_.fail_resume = {"a"};
    cluster_.slow_resume = {"b"};
    EXPECT_TRUE(engine_->Resume(kAda, job_).ok());
    Settle();
  }
  JobId job_;
};

TEST_F(HalfFrozen, TheSlotsOfARankThatMayGoOnAreNotGivenAway) {
  EXPECT_EQ(State(job_), JobState::kResuming);
  EXPECT_FALSE(Job(job_).in_ram);
  Submit(OnDemand(2), kBob);
  Settle();
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kLaunch), 2);  // its own
}

TEST_F(HalfFrozen, TheRankThatCannotIsNotToldAgain) {
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kResume), 3);
  Settle(60);
  EXPECT_EQ(Job(job_).state, JobState::kResuming);
}

TEST_F(HalfFrozen, ItStaysFrozenOnceTheOtherHasGoneOn) {
  cluster_.slow_resume = {};
  Settle(30);
  EXPECT_EQ(State(job_), JobState::kSuspended);
  EXPECT_THAT(Job(job_).reason, HasSubstr("rank 0 on a: it does not thaw"));
  EXPECT_EQ(cluster_.Running(job_), 0);
}

TEST_F(Mishaps, AJobThatMadeWayAndCannotGoOnTriesAgainLater) {
  AddNodes({"a"});
  const JobId job = Submit(Batch(1, {Method::kSuspend}));
  Settle();
  cluster_.fail_resume = {"a"};
  const JobId express = Submit(OnDemand(1), kBob);
  Settle();
  cluster_.Exit(express, 0, 0);
  Settle(5);
  EXPECT_EQ(State(job), JobState::kSuspended);
  EXPECT_LE(cluster_.Count(v1::ToAgent::kResume), 2);
  cluster_.fail_resume.clear();
  Settle(15);
  EXPECT_EQ(State(job), JobState::kRunning);
}

// ---- A script that ends well although the kernel has ended one of its children. ----

TEST_F(Mishaps, AJobOfWhichAProcessWasKilledForMemoryHasFailedWhateverItsScriptSays) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  cluster_.Exit(job, 0, 0, 1);
  Settle();
  EXPECT_EQ(State(job), JobState::kFailed);
  EXPECT_EQ(Job(job).exit_code, 128 + 9);
  EXPECT_EQ(Job(job).reason,
            "rank 0 on a was out of memory: the kernel ended 1 process of it, as the node had none left");
}

TEST_F(Mishaps, AnExitCodeOfItsOwnIsKept) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  cluster_.Exit(job, 0, 3, 2);
  Settle();
  EXPECT_EQ(Job(job).exit_code, 3);
  EXPECT_THAT(Job(job).reason, testing::HasSubstr("the kernel ended 2 processes of it"));
}

// ---- A job that ran, and whose processes are gone: nothing was restored. ----

TEST_F(Mishaps, AJobThatRanIsNotSaidToHaveFailedToBeRestored) {
  AddNodes({"a"});
  const JobId job = Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  cluster_.Vanish(job);
  Settle();
  std::vector<std::string> kinds;
  for (const Event& event : engine_->EventsAfter(0, 1000, Duration(0))) kinds.push_back(KindOf(event));
  EXPECT_THAT(kinds, testing::Contains("interrupted"));
  EXPECT_THAT(kinds, testing::Not(testing::Contains("restore-failed")));
}

}  // namespace
}  // namespace siding
