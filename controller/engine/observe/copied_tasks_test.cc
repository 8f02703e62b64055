// A copy of the journal was put back: tasks that wait for earlier orders, and those that were about to
// begin.
#include <set>

#include "controller/engine/observe/copy_fixture.h"

namespace siding {
namespace {

// ---- Frozen since. ----

class FrozenSince : public RestoredTest {
 protected:
  FrozenSince() {
    job_ = Submit(Batch());
    Settle();
    TakeCopy();
    EXPECT_TRUE(engine_->Suspend(kAda, job_).ok());
    Settle();
  }
  JobId job_;
};

TEST_F(FrozenSince, ItGoesOn) {
  PutBack();
  EXPECT_EQ(State(job_), JobState::kRunning);
  EXPECT_EQ(cluster_.Running(job_), 1);
}

TEST_F(FrozenSince, AlsoOnANodeThatHasFewerSlotsByNow) {
  const std::string node = Job(job_).nodes[0].value();
  cluster_.Disconnect(node);
  cluster_.AddNode(node, 2);
  PutBack();
  EXPECT_EQ(State(job_), JobState::kRunning);
  EXPECT_EQ(cluster_.Running(job_), 1);
}

TEST_F(RestoredTest, AJobThatHasBeenResumedSinceIsFrozenAgain) {
  const JobId job = Submit(Batch());
  Settle();
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  Settle();
  TakeCopy();
  ASSERT_TRUE(engine_->Resume(kAda, job).ok());
  Settle();
  PutBack();
  EXPECT_EQ(State(job), JobState::kSuspended);
  EXPECT_EQ(cluster_.Running(job), 0);
}

// It made way for a request that the copy knows, too.
class MadeWay : public RestoredTest {
 protected:
  MadeWay() {
    victim_ = Submit(Batch(2, {Method::kSuspend}));
    Settle();
    JobSpec spec = OnDemand(2, 100s);
    spec.not_before = clock_.Now() + 20s;
    express_ = Submit(spec, kBob);
    TakeCopy();
    Settle(30);
    EXPECT_EQ(State(express_), JobState::kRunning);
    EXPECT_EQ(cluster_.Count(v1::ToAgent::kSuspend), 2);
  }
  JobId victim_, express_;
};

TEST_F(MadeWay, ItStaysFrozenWhileTheRequestRuns) {
  PutBack();
  EXPECT_EQ(State(express_), JobState::kRunning);
  EXPECT_EQ(State(victim_), JobState::kSuspended);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kResume), 0);
  EXPECT_EQ(Job(victim_).displaced_by, express_);
}

TEST_F(MadeWay, ItComesBackAfterTheRequest) {
  PutBack();
  for (int rank : {0, 1}) cluster_.Exit(express_, rank, 0);
  Settle(5);
  EXPECT_EQ(State(victim_), JobState::kRunning);
  EXPECT_EQ(cluster_.Running(victim_), 2);
}

TEST_F(RestoredTest, AJobThatIsFoundFrozenWhereItWasMovedGoesOn) {
  const JobId job = Submit(Batch());
  Settle();
  TakeCopy();
  ASSERT_TRUE(engine_->Migrate(kAda, job, {NodeId("b")}).ok());
  Settle(5);
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  Settle();
  PutBack();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).incarnation, 2);
  EXPECT_EQ(cluster_.Running(job), 1);
}

// A resume that was on its way when the journal was copied; then it made way.
TEST_F(RestoredTest, AJobThatWasToBeResumedStaysFrozenWhileItsPlaceIsUsed) {
  const JobId job = Submit(Batch(2, {Method::kSuspend}));
  Settle();
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  Settle();
  JobSpec spec = OnDemand(2, 200s);
  spec.not_before = clock_.Now() + 20s;
  const JobId later = Submit(spec, kBob);
  ASSERT_TRUE(engine_->Resume(kAda, job).ok());
  ASSERT_EQ(State(job), JobState::kResuming);
  TakeCopy();
  Settle(30);
  ASSERT_EQ(State(later), JobState::kRunning);
  const int resumed = cluster_.Count(v1::ToAgent::kResume);
  PutBack();
  EXPECT_EQ(State(job), JobState::kSuspended);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kResume), resumed);
  for (int rank : {0, 1}) cluster_.Exit(later, rank, 0);
  Settle(5);
  EXPECT_EQ(State(job), JobState::kRunning);
}

// ---- Dumped since, and waiting for the commit. ----

TEST_F(RestoredTest, ADumpOfAJobThatIsFoundWhereItWasMovedIsCalledOff) {
  const JobId job = Submit(Batch());
  Settle();
  TakeCopy();
  ASSERT_TRUE(engine_->Migrate(kAda, job, {NodeId("b")}).ok());
  Settle(5);
  cluster_.slow_dump = {"b"};
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle();
  PutBack();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(cluster_.Running(job), 1);
}

// The order to undo it was lost with the connection.
TEST_F(RestoredTest, ADumpOfBeforeIsCalledOffAlsoIfAnotherHasBeenOrdered) {
  const JobId job = Submit(Batch());
  Settle();
  TakeCopy();
  cluster_.slow_dump = {"a"};
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  BeginPutBack();
  cluster_.LoseQueue();
  cluster_.Disconnect("a");
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  cluster_.slow_dump = {};
  cluster_.Connect("a");
  Settle(20);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).checkpoints.size(), 1u);
}

TEST_F(RestoredTest, NumbersOfOrdersAreNotGivenAgainToAJobThatIsFoundWhereItWasMoved) {
  const JobId job = Submit(Batch());
  Settle();
  TakeCopy();
  ASSERT_TRUE(engine_->Migrate(kAda, job, {NodeId("b")}).ok());
  Settle(5);
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  const int64_t before = cluster_.Last(v1::ToAgent::kDump).op();
  PutBack();
  ASSERT_EQ(Job(job).incarnation, 2);
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  EXPECT_GT(cluster_.Last(v1::ToAgent::kDump).op(), before + 1000);
}

// The order to dump has another number by now, but the image is the one that it asked for.
TEST_F(RestoredTest, AnImageThatWasPreparedBeforeIsCommittedAndNotMadeAgain) {
  const JobId job = Submit(Batch());
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  TakeCopy();
  StepUntil(job, JobState::kCommitting);
  cluster_.LoseQueue();
  PutBack();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDump), 1);
  EXPECT_EQ(Job(job).checkpoints.size(), 1u);
}

// Its dump was under way when the journal was copied, and its image counted soon after.
class DumpedSince : public RestoredTest {
 protected:
  DumpedSince() {
    job_ = Submit(Batch());
    Settle();
    EXPECT_TRUE(engine_->Checkpoint(kAda, job_, Tier::kShared).ok());
    TakeCopy();
    Settle();
    EXPECT_EQ(State(job_), JobState::kRunning);
  }
  JobId job_;
};

TEST_F(DumpedSince, ItIsDumpedAgainAndThatImageCounts) {
  PutBack();
  EXPECT_EQ(State(job_), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kCommit), 2);
  EXPECT_EQ(Job(job_).checkpoints.size(), 1u);
}

TEST_F(DumpedSince, TheCommitOfBeforeIsNotTakenForThatOfTheNewDump) {
  cluster_.slow_commit = {"a"};
  PutBack();
  EXPECT_EQ(State(job_), JobState::kCommitting);
}

TEST_F(DumpedSince, NorAfterThatOneHasFailed) {
  cluster_.fail_commit = {"a"};
  PutBack();
  EXPECT_EQ(State(job_), JobState::kRunning);
  EXPECT_TRUE(Job(job_).checkpoints.empty());
}

// ---- Of jobs that the copy does not know. ----

class Unknown : public RestoredTest {
 protected:
  Unknown() {
    Submit(Batch());
    Settle();
    TakeCopy();
    job_ = Submit(Batch());
    Settle();
    EXPECT_EQ(cluster_.Running(job_), 1);
  }
  JobId job_;
};

TEST_F(Unknown, ATaskThatRunsIsLeftAlone) {
  PutBack();
  EXPECT_EQ(cluster_.Running(job_), 1);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kResume) + cluster_.Count(v1::ToAgent::kAbort), 0);
}

TEST_F(Unknown, ItIsSaidOnceWithWhatCanBeDone) {
  PutBack();
  Settle(20);
  std::vector<std::string> said;
  for (const Event& event : engine_->EventsAfter(0, 1000, Duration(0))) {
    if (std::holds_alternative<Noted>(event.body)) said.push_back(Describe(event));
  }
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], HasSubstr(absl::StrCat("has a task of a job that the journal does not know, ",
                                              job_.value(), ".1.0: it is left alone")));
  // No other task's number begins like that.
  EXPECT_THAT(said[0], HasSubstr(absl::StrCat("/tasks/", job_.value(), ".1.0([^0-9.]|$)')\"")));
}

TEST_F(Unknown, ATaskThatIsFrozenGoesOn) {
  ASSERT_TRUE(engine_->Suspend(kAda, job_).ok());
  Settle();
  ASSERT_EQ(cluster_.Running(job_), 0);
  PutBack();
  EXPECT_EQ(cluster_.Running(job_), 1);
}

TEST_F(Unknown, ADumpIsCalledOff) {
  cluster_.slow_dump = {"a", "b"};
  ASSERT_TRUE(engine_->Vacate(kAda, job_, Tier::kShared).ok());
  Settle();
  ASSERT_EQ(cluster_.Running(job_), 0);
  PutBack();
  EXPECT_EQ(cluster_.Running(job_), 1);
}

// ---- Ended, and started. ----

TEST_F(RestoredTest, AJobThatHasBeenEndedToMakeWayHasNotFailed) {
  const JobId job = Submit(Batch());
  Settle();
  TakeCopy();
  ASSERT_TRUE(engine_->Kill(kAda, job).ok());
  cluster_.Run();  // its agent has not yet been told to forget it
  PutBack();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_GT(Job(job).incarnation, 1);
}

TEST_F(RestoredTest, AJobThatWasBeingStartedIsNotStartedUnderTheSameNumber) {
  const JobId job = Submit(Batch());
  ASSERT_EQ(State(job), JobState::kStarting);
  TakeCopy();
  Settle();
  cluster_.Exit(job, 0, 0);
  Settle();
  PutBack();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_GT(Job(job).incarnation, 1000);
}

TEST_F(RestoredTest, AJobThatWasBeingEndedToMakeWayIsFoundWhereItRunsByNow) {
  const JobId job = Submit(Batch(1, {Method::kKill}));
  Settle();
  const JobId express = Submit(OnDemand(2), kBob);
  ASSERT_EQ(State(job), JobState::kKilling);
  TakeCopy();
  Settle();
  for (int rank : {0, 1}) cluster_.Exit(express, rank, 0);
  Settle(5);
  ASSERT_EQ(State(job), JobState::kRunning);
  journal_ = std::move(copy_);
  StartController();
  for (const char* node : {"a", "b"}) cluster_.Connect(node);
  cluster_.Run();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).incarnation, 2);
  EXPECT_EQ(cluster_.Running(job), 1);
}

// Its node comes back late, with room for it.
TEST_F(RestoredTest, AJobThatWaitedIsNotStartedBesideATaskOfItThatLives) {
  cluster_.AddNode("c", 8);
  JobSpec on_c = Batch();
  on_c.per_node.slots = 5;
  const JobId first = Submit(on_c);
  on_c.per_node.slots = 4;
  on_c.priority = 9;
  JobSpec filler = Batch();
  Submit(filler), Submit(filler);
  Settle();
  const JobId waits = Submit(on_c);
  Settle();
  ASSERT_EQ(State(waits), JobState::kPending);
  TakeCopy();
  cluster_.Exit(first, 0, 0);
  Settle();
  ASSERT_EQ(State(waits), JobState::kRunning);
  ASSERT_EQ(Job(waits).nodes[0], NodeId("c"));
  cluster_.Disconnect("c");
  PutBack();
  const int launched = cluster_.Count(v1::ToAgent::kLaunch);
  cluster_.Connect("c");
  EXPECT_EQ(State(waits), JobState::kPending);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kLaunch), launched);
  Settle(5);
  cluster_.Exit(first, 0, 0);  // again
  Settle(5);
  EXPECT_EQ(State(waits), JobState::kRunning);
  EXPECT_EQ(cluster_.Running(waits), 1);
}

// ---- Since the copy an operator has said that a node is lost, which was only cut off. ----

class LostSince : public RestoredTest {
 protected:
  LostSince() { cluster_.AddNode("c"); }
  void CutOff(const char* node) {
    cluster_.Disconnect(node);
    EXPECT_TRUE(engine_->Lose(kRoot, NodeId(node)).ok());
    Settle();
  }
  // It ends where it is known to run, and begins again.
  void ExpectItWaitsFor(const char* node, JobId job) {
    cluster_.Vanish(job);
    Settle(5);
    EXPECT_EQ(State(job), JobState::kPending);
    cluster_.Connect(node);
    Settle(5);
    EXPECT_EQ(State(job), JobState::kRunning);
    EXPECT_EQ(cluster_.Running(job), 1);
  }
  std::set<JobId> GivenUpOn(const char* node) {
    std::set<JobId> jobs;
    engine_->Read([&](const ClusterState& state) {
      if (const auto found = state.given_up.find(NodeId(node)); found != state.given_up.end())
        jobs = found->second;
    });
    return jobs;
  }
};

// It waited when the copy was made; then it was started on a, which was away when the copy was put back.
TEST_F(LostSince, AJobIsNotStartedBesideALifeThatTheCopyDoesNotKnow) {
  for (const char* node : {"a", "b", "c"}) ASSERT_TRUE(engine_->Cordon(kRoot, NodeId(node), true).ok());
  const JobId job = Submit(Batch());
  TakeCopy();
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("a"), false).ok());
  Settle();
  ASSERT_EQ(Job(job).nodes, std::vector{NodeId("a")});
  cluster_.Disconnect("a");
  PutBack({"b", "c"});
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("b"), false).ok());
  Settle(5);
  ASSERT_EQ(Job(job).nodes, std::vector{NodeId("b")});
  cluster_.Connect("a");  // for a moment
  cluster_.LoseQueue();
  cluster_.Disconnect("a");
  EXPECT_EQ(GivenUpOn("a"), std::set{job});
  ExpectItWaitsFor("a", job);
}

// It ran on a when the copy was made, and runs on b; what of it is left on a the copy does not know.
class StartedAgainSince : public LostSince {
 protected:
  StartedAgainSince() {
    job_ = Submit(Batch());
    Settle();
    TakeCopy();
    CutOff("a");
    PutBack({"b", "c"});
    EXPECT_EQ(Job(job_).nodes, std::vector{NodeId("b")});
    EXPECT_EQ(Job(job_).incarnation, 2);
  }
  JobId job_;
};

TEST_F(StartedAgainSince, ItIsNotStartedOnceMoreBeforeThatNodeIsBack) { ExpectItWaitsFor("a", job_); }

TEST_F(StartedAgainSince, NorBeforeThatNodeIsSaidToBeLostAgain) {
  cluster_.Vanish(job_);
  Settle(5);
  ASSERT_EQ(State(job_), JobState::kPending);
  EXPECT_TRUE(engine_->Lose(kRoot, NodeId("a")).ok());
  Settle();
  EXPECT_EQ(State(job_), JobState::kRunning);
}

TEST_F(StartedAgainSince, WhatIsLeftThereIsEnded) {
  ASSERT_EQ(cluster_.Running(job_), 2);
  EXPECT_EQ(GivenUpOn("a"), std::set{job_});
  cluster_.Connect("a");
  Settle(5);
  EXPECT_EQ(cluster_.Running(job_), 1);
  EXPECT_EQ(Job(job_).nodes, std::vector{NodeId("b")});
  EXPECT_TRUE(GivenUpOn("a").empty());
}

// Being ended there when the copy was made.
TEST_F(LostSince, AJobThatWasBeingEndedIsNotForgottenThereEither) {
  const JobId job = Submit(Batch(1, {Method::kKill}));
  Submit(Batch(1, {})), Submit(Batch(1, {}));
  Settle();
  ASSERT_EQ(Job(job).nodes, std::vector{NodeId("a")});
  Submit(OnDemand(1), kBob);
  ASSERT_EQ(State(job), JobState::kKilling);
  TakeCopy();
  cluster_.LoseQueue();
  CutOff("a");
  AddNodes({"d", "e"});
  Settle();
  ASSERT_EQ(State(job), JobState::kRunning);
  PutBack({"b", "c", "d", "e"});
  ASSERT_EQ(State(job), JobState::kRunning);
  ASSERT_EQ(Job(job).incarnation, 2);
  EXPECT_EQ(GivenUpOn("a"), std::set{job});
}

// On b it was left by its second life, on c it is in its third.
class TwoLivesSince : public LostSince {
 protected:
  TwoLivesSince() {
    job_ = Submit(Batch());
    Settle();
    TakeCopy();
    EXPECT_TRUE(engine_->Migrate(kAda, job_, {NodeId("b")}).ok());
    Settle(5);
    EXPECT_TRUE(engine_->Cordon(kRoot, NodeId("a"), true).ok());
    CutOff("b");
    EXPECT_EQ(Job(job_).nodes, std::vector{NodeId("c")});
    EXPECT_EQ(Job(job_).incarnation, 3);
  }
  JobId job_;
};

TEST_F(TwoLivesSince, ItIsFoundInTheLaterOne) {
  PutBack({"a", "b", "c"});
  EXPECT_EQ(State(job_), JobState::kRunning);
  EXPECT_EQ(Job(job_).nodes, std::vector{NodeId("c")});
  EXPECT_EQ(Job(job_).incarnation, 3);
  EXPECT_EQ(cluster_.Running(job_), 1);
  EXPECT_TRUE(GivenUpOn("b").empty());
}

TEST_F(TwoLivesSince, ANumberOfALifeThatItDoesNotKnowIsNotGivenAgain) {
  PutBack({"a", "b"});
  ASSERT_EQ(Job(job_).incarnation, 2);
  cluster_.Vanish(job_);
  Settle(5);
  EXPECT_EQ(State(job_), JobState::kRunning);
  EXPECT_GT(Job(job_).incarnation, 1000);
}

}  // namespace
}  // namespace siding
