// An operator says that a node is gone for good; and nodes that come back all the same.
#include "controller/engine/engine_fixture.h"
#include "controller/engine/state/state_text.h"

namespace siding {
namespace {

class LostTest : public EngineTest {
 protected:
  LostTest() { AddNodes({"a", "b"}); }
  absl::Status Lose(const char* node) { return engine_->Lose(kRoot, NodeId(node)); }
  // It burns.
  void Burn(const char* node) {
    cluster_.Disconnect(node);
    ASSERT_TRUE(Lose(node).ok());
  }
  JobId RunningOn(const char* node, JobSpec spec = Batch()) {
    const JobId job = Submit(std::move(spec));
    Settle();
    EXPECT_EQ(State(job), JobState::kRunning);
    EXPECT_EQ(Job(job).nodes[0], NodeId(node));
    return job;
  }
  void Checkpoint(JobId job, Tier tier) {
    ASSERT_TRUE(engine_->Checkpoint(kAda, job, tier).ok());
    Settle();
  }
  // It is being dumped on a, and neither node's agent is connected.
  JobId JobToBeMovedToB() {
    const JobId job = RunningOn("a");
    cluster_.slow_dump = {"a"};
    EXPECT_TRUE(engine_->Migrate(kAda, job, {NodeId("b")}).ok());
    Settle();
    for (const char* node : {"a", "b"}) cluster_.Disconnect(node);
    return job;
  }
  void GoesElsewhereWhenBIsLost(JobId job) {
    cluster_.slow_dump.clear();
    cluster_.Restart("a");
    Settle(10);
    ASSERT_EQ(State(job), JobState::kParked);
    ASSERT_TRUE(Lose("b").ok());
    Settle();
    EXPECT_EQ(State(job), JobState::kRunning);
    EXPECT_EQ(Job(job).nodes, std::vector{NodeId("a")});
  }
  bool IsLost(const char* node) {
    bool lost = false;
    engine_->Read([&](const ClusterState& state) { lost = state.IsLost(NodeId(node)); });
    return lost;
  }
  CheckpointRecord CheckpointNamed(const char* id) {
    CheckpointRecord checkpoint;
    engine_->Read([&](const ClusterState& state) { checkpoint = state.checkpoints.at(CheckpointId(id)); });
    return checkpoint;
  }
  std::string Text() {
    std::string text;
    engine_->Read([&](const ClusterState& state) { text = StateText(state); });
    return text;
  }
  int Events(const std::string& kind) {
    int count = 0;
    for (const Event& event : engine_->EventsAfter(0, 1000, 0s)) count += KindOf(event) == kind;
    return count;
  }
};

// ---- Who may say it, and of what. ----

TEST_F(LostTest, OnlyOperatorsMaySayIt) {
  cluster_.Disconnect("a");
  EXPECT_EQ(engine_->Lose(kAda, NodeId("a")).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_FALSE(IsLost("a"));
}

TEST_F(LostTest, ANodeWhoseAgentIsConnectedIsNot) {
  const absl::Status refused = Lose("a");
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("node a is there, its agent is connected"));
  EXPECT_FALSE(IsLost("a"));
}

TEST_F(LostTest, ANodeThatNobodyKnowsIsNamed) {
  EXPECT_EQ(Lose("z"), absl::NotFoundError("there is no node z"));
}

TEST_F(LostTest, WhoHasSaidItIsRecorded) {
  Burn("a");
  EXPECT_EQ(Describe(engine_->EventsAfter(0, 1000, 0s).back()),
            "node a is lost, says root: what ran there continues elsewhere");
}

TEST_F(LostTest, SaidTwiceItIsRecordedOnce) {
  Burn("a");
  const Time since = clock_.Now();
  clock_.Advance(10s);
  EXPECT_TRUE(Lose("a").ok());
  EXPECT_EQ(Events("node-lost"), 1);
  engine_->Read([&](const ClusterState& state) { EXPECT_EQ(state.nodes.at(NodeId("a")).lost_since, since); });
}

TEST_F(LostTest, NothingIsDoneThatCannotBeRecorded) {
  journal_ = std::make_unique<FullJournal>();
  StartController();
  AddNodes({"a", "b"});
  const JobId job = RunningOn("a");
  cluster_.Disconnect("a");
  static_cast<FullJournal&>(*journal_).full = true;
  EXPECT_FALSE(Lose("a").ok());
  EXPECT_FALSE(IsLost("a"));
  EXPECT_EQ(State(job), JobState::kRunning);
}

// ---- What becomes of jobs. ----

TEST_F(LostTest, WithoutAWordItsJobStaysAsItIs) {
  const JobId job = RunningOn("a");
  cluster_.Disconnect("a");
  Settle(100);
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(LostTest, ItsJobGoesOnElsewhereFromItsCheckpoint) {
  const JobId job = RunningOn("a");
  Checkpoint(job, Tier::kShared);
  Burn("a");
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).nodes, std::vector{NodeId("b")});
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kRestore).restore().checkpoint(), "1.1");
}

TEST_F(LostTest, WithoutACheckpointItStartsFromTheBeginning) {
  const JobId job = RunningOn("a");
  Burn("a");
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).incarnation, 2);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kLaunch), 2);
  EXPECT_EQ(Events("restart-needed"), 1);
}

TEST_F(LostTest, AGangGoesOnWithAllItsRanks) {
  AddNodes({"c"});
  const JobId gang = RunningOn("a", Batch(2));
  Checkpoint(gang, Tier::kShared);
  Burn("b");
  Settle(5);
  EXPECT_EQ(State(gang), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kRestore), 2);
  EXPECT_THAT(Job(gang).nodes, testing::UnorderedElementsAre(NodeId("a"), NodeId("c")));
}

TEST_F(LostTest, AFrozenJobGoesOnElsewhere) {
  const JobId job = RunningOn("a");
  Checkpoint(job, Tier::kShared);
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  Settle();
  ASSERT_EQ(State(job), JobState::kSuspended);
  Burn("a");
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
}

// Each of its ranks has to be seen gone before it may start again, and one cannot be.
TEST_F(LostTest, AGangThatWaitedForItIsStartedAgain) {
  AddNodes({"c", "d"});
  const JobId gang = RunningOn("a", Batch(2));
  cluster_.Disconnect("b");
  cluster_.Vanish(gang);
  Settle(20);
  ASSERT_EQ(State(gang), JobState::kPending);
  ASSERT_TRUE(Lose("b").ok());
  Settle();
  EXPECT_EQ(State(gang), JobState::kRunning);
}

TEST_F(LostTest, AJobThatIsBeingEndedThereHasEnded) {
  const JobId job = RunningOn("a");
  cluster_.Disconnect("a");
  ASSERT_TRUE(engine_->Kill(kAda, job).ok());
  Settle();
  ASSERT_EQ(State(job), JobState::kKilling);
  ASSERT_TRUE(Lose("a").ok());
  EXPECT_EQ(State(job), JobState::kCancelled);
}

TEST_F(LostTest, AnEndThatWasSeenBeforeCounts) {
  const JobId gang = RunningOn("a", Batch(2));
  Checkpoint(gang, Tier::kShared);
  cluster_.Exit(gang, 0, 0);
  Settle();
  Burn("a");
  Settle();
  EXPECT_EQ(State(gang), JobState::kRunning);
  EXPECT_EQ(Job(gang).incarnation, 1);
}

TEST_F(LostTest, AJobThatWasToBeMovedThereGoesElsewhere) { GoesElsewhereWhenBIsLost(JobToBeMovedToB()); }

// A controller that was started since knows that node from the job's record only.
TEST_F(LostTest, AJobThatWasToBeMovedToANodeThatIsNotHeardOfGoesElsewhere) {
  const JobId job = JobToBeMovedToB();
  StartController();
  GoesElsewhereWhenBIsLost(job);
}

TEST_F(LostTest, ARequestIsPlannedAgainWithoutIt) {
  AddNodes({"c"});
  for (int i = 0; i < 3; ++i) Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  cluster_.slow_dump = {"a", "b", "c"};
  const JobId request = Submit(OnDemand(2, 100s), kBob);
  Settle();
  const std::vector<NodeId> planned = Job(request).plans.back().nodes;
  ASSERT_EQ(planned.size(), 2u);
  Burn(planned[0].value().c_str());
  Settle(2);
  EXPECT_THAT(Job(request).plans.back().nodes, testing::Not(testing::Contains(planned[0])));
}

// ---- Images. ----

TEST_F(LostTest, AnImageOnItsDiskOnlyIsNone) {
  const JobId job = RunningOn("a");
  Checkpoint(job, Tier::kShared);
  Checkpoint(job, Tier::kLocal);
  Burn("a");
  Settle();
  EXPECT_EQ(CheckpointNamed("1.2").state, CheckpointState::kDeleted);
  EXPECT_EQ(CheckpointNamed("1.2").note, "rank 0 lies on node a, which is lost");
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kRestore).restore().checkpoint(), "1.1");
}

TEST_F(LostTest, AJobThatWaitedForItsImageThereStartsFromTheBeginning) {
  const JobId job = RunningOn("a");
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("a"), true).ok());
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kLocal).ok());
  Settle();
  ASSERT_EQ(State(job), JobState::kParked);
  Burn("a");
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kRestore), 0);
  EXPECT_EQ(Job(job).nodes, std::vector{NodeId("b")});
}

TEST_F(LostTest, AnImageOnTheDisksOfAGangIsNoneWithoutOneOfThem) {
  const JobId gang = RunningOn("a", Batch(2));
  Checkpoint(gang, Tier::kLocal);
  Burn("b");
  EXPECT_EQ(CheckpointNamed("1.1").state, CheckpointState::kDeleted);
  AddNodes({"c"});
  Settle(5);
  EXPECT_EQ(State(gang), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kRestore), 0);
}

TEST_F(LostTest, ARankThatHadEndedHasNoImageToLose) {
  const JobId gang = RunningOn("a", Batch(2));
  cluster_.Exit(gang, 1, 0);
  Settle();
  Checkpoint(gang, Tier::kLocal);
  Burn("b");
  EXPECT_EQ(CheckpointNamed("1.1").state, CheckpointState::kGood);
  EXPECT_EQ(State(gang), JobState::kRunning);
}

// ---- It comes back all the same. ----

TEST_F(LostTest, WhatItStillHasIsEndedAndItIsUsedAgain) {
  const JobId job = RunningOn("a");
  Checkpoint(job, Tier::kShared);
  Burn("a");
  Settle();
  ASSERT_EQ(cluster_.Running(job), 2) << "the operator was wrong";
  cluster_.Connect("a");
  EXPECT_FALSE(IsLost("a"));
  EXPECT_EQ(Events("node-back"), 1);
  const JobId next = Submit(Batch());
  EXPECT_EQ(State(next), JobState::kPending) << "nothing is free before it has been seen free";
  Settle();
  EXPECT_EQ(cluster_.Running(job), 1);
  EXPECT_EQ(Job(job).nodes, std::vector{NodeId("b")});
  EXPECT_EQ(Job(job).incarnation, 2);
  EXPECT_EQ(State(next), JobState::kRunning);
  EXPECT_EQ(Job(next).nodes, std::vector{NodeId("a")});
}

TEST_F(LostTest, AnEndThereOfAJobThatHasBeenStartedAgainIsNotItsEnd) {
  const JobId job = RunningOn("a");
  Burn("a");
  Settle();
  cluster_.Connect("a");
  ReportExit("a", job, 1);
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(LostTest, AJobThatStillWaitsDoesNotStartBesideItsTaskThere) {
  cluster_.Disconnect("b");
  const JobId job = RunningOn("a");
  Burn("a");
  Settle();
  ASSERT_EQ(State(job), JobState::kPending);
  cluster_.Connect("a");
  while (cluster_.Step()) EXPECT_LE(cluster_.Running(job), 1);
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(1s);
    engine_->Tick();
    while (cluster_.Step()) EXPECT_LE(cluster_.Running(job), 1);
  }
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).incarnation, 2);
}

// The end of a gang's other rank was waited for when the operator spoke.
TEST_F(LostTest, NorAfterAKillThatItsNodeNeverHeardOf) {
  AddNodes({"c"});
  const JobId gang = RunningOn("a", Batch(2, {Method::kKill}));
  cluster_.Disconnect("b");
  const JobId express = Submit(OnDemand(2), kBob);
  Settle();
  ASSERT_EQ(State(gang), JobState::kKilling);
  ASSERT_TRUE(Lose("b").ok());
  Settle();
  ASSERT_EQ(State(express), JobState::kRunning);
  ASSERT_EQ(State(gang), JobState::kPending);
  EXPECT_EQ(Job(gang).left_on, std::vector{NodeId("b")});
}

// Both nodes that it ran on were lost; the first is back.
TEST_F(LostTest, NorBesideATaskOfAnEarlierLife) {
  AddNodes({"c"});
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("c"), true).ok());
  const JobId job = RunningOn("a");
  Burn("a");
  Settle();
  ASSERT_EQ(Job(job).nodes, std::vector{NodeId("b")});
  Burn("b");
  Settle();
  ASSERT_EQ(State(job), JobState::kPending);
  cluster_.Connect("a");
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("c"), false).ok());
  EXPECT_EQ(State(job), JobState::kPending);
  EXPECT_EQ(Events("tasks-gone"), 0);
  Settle(5);
  EXPECT_EQ(Events("tasks-gone"), 1);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).incarnation, 3);
}

// A controller that is started again has not seen what is left there.
TEST_F(LostTest, NorBeforeItHasBeenHeardAgain) {
  AddNodes({"c"});
  const JobId job = RunningOn("a");
  Burn("a");
  Settle();
  cluster_.Connect("a");
  cluster_.Disconnect("a");  // before anything there was ended
  cluster_.Vanish(job);      // where it runs now
  Settle(5);
  EXPECT_EQ(State(job), JobState::kPending);
  StartController();
  for (const char* node : {"b", "c"}) cluster_.Connect(node);
  Settle(15);
  EXPECT_EQ(State(job), JobState::kPending);
  cluster_.Connect("a");
  Settle(5);
  EXPECT_EQ(State(job), JobState::kRunning);
}

// It runs already. To keep it frozen would undo nothing.
TEST_F(LostTest, AJobThatMadeWayGoesOnWhateverIsLeftOfItsEarlierLife) {
  const JobId job = RunningOn("a", Batch(1, {Method::kSuspend, Method::kKill}));
  Burn("a");
  Settle();
  ASSERT_EQ(Job(job).nodes, std::vector{NodeId("b")});
  cluster_.Connect("a");
  cluster_.Disconnect("a");  // before anything there was ended
  const JobId express = Submit(OnDemand(1), kBob);
  Settle();
  ASSERT_EQ(State(express), JobState::kRunning);
  ASSERT_EQ(State(job), JobState::kSuspended);
  cluster_.Exit(express, 0, 0);
  Settle(5);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Events("tasks-gone"), 0);
}

TEST_F(LostTest, ItsImageIsDeletedThen) {
  const JobId job = RunningOn("a");
  Checkpoint(job, Tier::kLocal);
  Burn("a");
  Settle(5);
  EXPECT_EQ(CheckpointNamed("1.1").state, CheckpointState::kDeleted);
  cluster_.Connect("a");
  Settle(5);
  EXPECT_EQ(CheckpointNamed("1.1").state, CheckpointState::kGone);
}

// No record would say what its task is, and it would not be ended.
TEST_F(LostTest, AJobIsNotForgottenBefore) {
  engine_->SetRetention({1h, 1000});
  const JobId job = RunningOn("a");
  Burn("a");
  Settle();
  cluster_.Exit(job, 0, 0);
  Settle();
  ASSERT_EQ(State(job), JobState::kDone);
  StartController();  // what agents have said is not what keeps it
  engine_->SetRetention({1h, 1000});
  cluster_.Connect("b");
  clock_.Advance(100h);
  Settle(5);
  EXPECT_EQ(State(job), JobState::kDone);
  cluster_.Connect("a");
  Settle(5);
  engine_->Read([&](const ClusterState& state) { EXPECT_FALSE(state.jobs.contains(job)); });
}

// ---- The controller is started again. ----

TEST_F(LostTest, ItIsRemembered) {
  const JobId job = RunningOn("a");
  Burn("a");
  Settle();
  const std::string before = Text();
  StartController();
  EXPECT_EQ(Text(), before);
  cluster_.Connect("b");
  Settle(20);
  EXPECT_TRUE(IsLost("a"));
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).incarnation, 2);
}

TEST_F(LostTest, AControllerThatHasNotHeardOfItKnowsItByItsJobs) {
  const JobId job = RunningOn("a");
  cluster_.Disconnect("a");
  StartController();
  cluster_.Connect("b");
  EXPECT_THAT(std::string(Lose("a").message()), HasSubstr("may still dial"));
  EXPECT_FALSE(IsLost("a"));
  Settle(15);
  EXPECT_EQ(State(job), JobState::kRunning);
  ASSERT_TRUE(Lose("a").ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).nodes, std::vector{NodeId("b")});
}

TEST_F(LostTest, ThatItIsBackIsRemembered) {
  RunningOn("a");
  Burn("a");
  Settle();
  cluster_.Connect("a");
  Settle();
  const std::string before = Text();
  StartController();
  EXPECT_EQ(Text(), before);
  EXPECT_FALSE(IsLost("a"));
}

// ---- Jobs of which nothing is left. ----

class NothingLeftTest : public LostTest {
 protected:
  static JobSpec Then(OnNodeFailure what, JobSpec spec) {
    spec.on_node_failure = what;
    return spec;
  }
  JobState AfterItsNodeBurnt(JobSpec spec) {
    const JobId job = RunningOn("a", std::move(spec));
    Burn("a");
    Settle();
    return State(job);
  }
  // A job on demand runs on a, and another job on b.
  void Fill(Duration within = 60s) {
    express_ = RunningOn("a", OnDemand(1, within));
    other_ = RunningOn("b", Batch(1, {Method::kSuspend}));
  }
  void SetWhenLate(WhenLate when) {
    policy_.when_late = when;
    engine_->SetPolicy(policy_);
  }
  std::string WhyWaits(JobId job) {
    std::string why;
    engine_->Read([&](const ClusterState& state) { why = engine_->WhyWaits(state.jobs.at(job)); });
    return why;
  }

  JobId express_, other_;
};

TEST_F(NothingLeftTest, AJobOnDemandIsPlannedAgainForItsDeadline) {
  Fill();
  Burn("a");
  Settle();
  EXPECT_EQ(State(other_), JobState::kSuspended);
  EXPECT_EQ(State(express_), JobState::kRunning);
  EXPECT_LE(Job(express_).running_since, Job(express_).spec.start_by);
}

TEST_F(NothingLeftTest, AJobOnDemandWhoseTasksAreGoneStartsOver) {
  Fill();
  cluster_.Vanish(express_);
  Settle();
  EXPECT_EQ(State(express_), JobState::kRunning);
  EXPECT_EQ(Job(express_).incarnation, 2);
  EXPECT_EQ(State(other_), JobState::kRunning);
}

TEST_F(NothingLeftTest, OneThatIsToBeParkedWaitsForAWord) {
  EXPECT_EQ(AfterItsNodeBurnt(Then(OnNodeFailure::kPark, OnDemand(1))), JobState::kParked);
}

TEST_F(NothingLeftTest, SoDoesABatchJobThatMayBeKilled) {
  EXPECT_EQ(AfterItsNodeBurnt(Then(OnNodeFailure::kPark, Batch())), JobState::kParked);
}

TEST_F(NothingLeftTest, OneThatIsToBeParkedMakesWayByAKillAllTheSame) {
  Fill();
  const JobId batch = other_;
  ASSERT_TRUE(engine_->Kill(kAda, batch).ok());
  const JobId victim = RunningOn("b", Then(OnNodeFailure::kPark, Batch(1, {Method::kKill})));
  const JobId second = Submit(OnDemand(1), kBob);
  Settle();
  EXPECT_EQ(State(second), JobState::kRunning);
  EXPECT_EQ(State(victim), JobState::kPending);
}

TEST_F(NothingLeftTest, ABatchJobThatIsNotPreemptibleWaitsForAWord) {
  EXPECT_EQ(AfterItsNodeBurnt(Batch(1, {})), JobState::kParked);
}

TEST_F(NothingLeftTest, UnlessItIsToBeRequeued) {
  EXPECT_EQ(AfterItsNodeBurnt(Then(OnNodeFailure::kRequeue, Batch(1, {}))), JobState::kRunning);
}

TEST_F(NothingLeftTest, AfterItsDeadlineOthersMakeWayAsSoonAsTheyCan) {
  Fill(10s);
  clock_.Advance(1h);
  Burn("a");
  Settle(1);
  EXPECT_THAT(WhyWaits(express_), testing::Not(HasSubstr("missed")));
  Settle();
  EXPECT_EQ(State(other_), JobState::kSuspended);
  EXPECT_EQ(State(express_), JobState::kRunning);
}

TEST_F(NothingLeftTest, AfterItsDeadlineItWaitsItsTurnWhereThePolicySaysSo) {
  SetWhenLate(WhenLate::kQueue);
  Fill(10s);
  clock_.Advance(1h);
  Burn("a");
  Settle(5);
  EXPECT_EQ(State(express_), JobState::kPending);
  EXPECT_EQ(State(other_), JobState::kRunning);
  cluster_.Exit(other_, 0, 0);
  Settle();
  EXPECT_EQ(State(express_), JobState::kRunning);
}

// It was to get a from another job after 30 s, and b became free before.
TEST_F(NothingLeftTest, AStepOfThePlanForItsFirstStartIsNotOrderedForItsNext) {
  policy_.min_runtime = 30s;
  engine_->SetPolicy(policy_);
  const JobId victim = RunningOn("a", Batch(1, {Method::kSuspend}));
  const JobId short_one = RunningOn("b", Batch(1, {}));
  const JobId express = Submit(OnDemand(1), kBob);
  cluster_.Exit(short_one, 0, 0);
  Settle();
  ASSERT_EQ(State(express), JobState::kRunning);
  Settle(40);
  cluster_.Vanish(express);
  Settle();
  EXPECT_EQ(State(express), JobState::kRunning);
  EXPECT_EQ(Job(victim).preemptions, 0);
}

}  // namespace
}  // namespace siding
