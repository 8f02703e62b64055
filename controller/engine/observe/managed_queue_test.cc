// A cluster manager with a queue of its own: deadline jobs come from it, and what siding wants goes to it.
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Says nothing by itself; remembers what was desired last.
class FakeManager final : public Platform {
 public:
  std::vector<Placement> Place(const std::vector<Waiting>&, std::vector<NodeRoom>) override { return {}; }
  std::string manager() const override {
    on_asked();
    return "manager";
  }
  Capabilities capabilities() const override { return can; }
  bool steers() const override { return steering; }
  bool continues_jobs() const override { return continuing; }
  void SetDesired(const DesiredState& state) override {
    desired = state;
    ++times;
    on_desired();
  }

  std::optional<std::set<NodeId>> NodesFor(const JobSpec&) const override { return nodes; }

  std::optional<std::set<NodeId>> nodes;
  Capabilities can{.freezing_frees_slots = false, .freezing_frees_gpus = false};
  bool steering = true;
  bool continuing = false;
  DesiredState desired;
  int times = 0;
  std::function<void()> on_desired = [] {}, on_asked = [] {};
};

const JobId kBatchJob(42), kExpress(50);

// What the manager says reaches the engine.
class ManagerTest : public EngineTest {
 protected:
  explicit ManagerTest(std::initializer_list<const char*> nodes) {
    platform_ = std::make_unique<FakeManager>();
    StartController();
    AddNodes(nodes);
  }
  FakeManager& manager() { return static_cast<FakeManager&>(*platform_); }
  void Say(ManagedJob job) {
    ManagerChanges changes;
    changes.jobs = {std::move(job)};
    engine_->OnManager(std::move(changes));
    Settle();
  }
  void Gone(JobId id) {
    ManagerChanges changes;
    changes.gone_jobs = {id};
    engine_->OnManager(std::move(changes));
    Settle();
  }
};

// A manager whose jobs may be ended: who made them starts them again.
class PodsTest : public ManagerTest {
 protected:
  PodsTest() : ManagerTest({"a"}) {}
  ManagedJob Pod(JobId id, ManagedPhase phase) {
    ManagedJob job;
    job.id = id;
    job.phase = phase;
    job.spec = Batch(1, {Method::kKill});
    job.spec.cluster_manager = kKubernetes;
    job.spec.kill_grace = 1s;
    if (phase != ManagedPhase::kWaiting) {
      job.nodes = {NodeId("a")};
      job.started = clock_.Now();
    }
    return job;
  }
  // Who speaks for it says that it runs.
  void StartPod(const std::string& node, JobId job, std::initializer_list<v1::Method> methods) {
    v1::JobSpec task;
    task.set_cluster_manager(kKubernetes);
    task.set_nodes(1);
    for (const v1::Method method : methods) task.add_methods(method);
    cluster_.StartManaged(node, task, job.value(), 1);
    Settle();
  }
  // Job 43, of a higher priority.
  void RunADearerPodOnB() {
    AddNodes({"b"});
    ManagedJob other = Pod(JobId(43), ManagedPhase::kRunning);
    other.nodes = {NodeId("b")};
    other.spec.priority = 9;
    Say(other);
    StartPod("b", JobId(43), {v1::KILL});
  }
  // Its agent has begun to start it.
  void BeginBatch() {
    v1::FromAgent message;
    v1::TaskReport& report = *message.mutable_report();
    report.mutable_task()->set_job(kBatchJob.value());
    report.mutable_task()->set_incarnation(1);
    report.set_phase(v1::LAUNCHING);
    report.mutable_spec()->set_cluster_manager(kKubernetes);
    report.mutable_spec()->set_nodes(1);
    report.mutable_spec()->add_methods(v1::KILL);
    engine_->OnMessage(NodeId("a"), message);
    Say(Pod(kBatchJob, ManagedPhase::kRunning));
    ASSERT_EQ(State(kBatchJob), JobState::kStarting);
  }
  ManagedJob Deadline(JobId id) {
    ManagedJob job = Pod(id, ManagedPhase::kWaiting);
    job.spec.kind = JobKind::kOnDemand;
    job.spec.methods = {};
    job.spec.start_by = clock_.Now() + 60s;
    return job;
  }
  // Its pod has a node, and its container has not been started yet.
  void BindExpress() {
    ManagedJob express = Deadline(kExpress);
    express.spec.start_by = Job(kExpress).spec.start_by;
    express.phase = ManagedPhase::kRunning;
    express.nodes = {NodeId("a")};
    express.starts = 1;
    express.started.reset();
    Say(express);
  }
  void SayNode(int slots = 4, bool usable = true) {
    ManagerChanges changes;
    changes.nodes = {{.id = NodeId("a"), .capacity = {slots, Bytes{8LL << 30}, 0}, .usable = usable}};
    engine_->OnManager(std::move(changes));
    Settle();
  }
  void Pass(Duration time) {
    for (Duration passed{}; passed < time; passed += 100ms) {
      clock_.Advance(100ms);
      engine_->Tick();
      cluster_.Run();
    }
  }
  void RunBatch() {
    Say(Pod(kBatchJob, ManagedPhase::kRunning));
    StartPod("a", kBatchJob, {v1::KILL});
  }
  void MakeWay() {
    RunBatch();
    Say(Deadline(kExpress));
  }
};

TEST_F(PodsTest, AVictimIsEnded) {
  MakeWay();
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kKill), 1);
  EXPECT_EQ(Job(kBatchJob).preemptions, 1);
  EXPECT_THAT(manager().desired.kept.at(kExpress).nodes, ElementsAre(NodeId("a")));
}
TEST_F(PodsTest, WhoContinuesJobsIsToldAtOnceThatThereAreNone) {
  manager().continuing = true;
  StartController();
  const int before = manager().times;
  engine_->Tick();
  EXPECT_EQ(manager().times, before + 1);
}
TEST_F(PodsTest, WhoeverHasAQueueIsToldAtOnceThatNothingIsDesired) {
  StartController();
  const int before = manager().times;
  engine_->Tick();
  EXPECT_EQ(manager().times, before + 1);
}
TEST_F(PodsTest, ForWhomANodeIsKeptIsSaidBeforeItsVictimIsToldToLeave) {
  std::optional<int> ended_by_then;
  manager().on_desired = [&] {
    if (manager().desired.kept.contains(kExpress) && !ended_by_then)
      ended_by_then = cluster_.Waiting(v1::ToAgent::kKill);
  };
  MakeWay();
  EXPECT_EQ(ended_by_then, 0);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kKill), 1);
}
// In a large cluster a look at everything takes its time, and is not allowed after each message.
TEST_F(PodsTest, ForWhomANodeIsKeptIsSaidBeforeThoughTheLastLookWasSlow) {
  std::optional<int> ended_by_then;
  manager().on_desired = [&] {
    if (manager().desired.kept.contains(kExpress) && !ended_by_then)
      ended_by_then = cluster_.Waiting(v1::ToAgent::kKill) + cluster_.Count(v1::ToAgent::kKill);
  };
  RunBatch();
  clock_.Advance(1s);
  manager().on_asked = [&] { clock_.Advance(10ms); };
  engine_->Tick();
  manager().on_asked = [] {};
  Say(Deadline(kExpress));
  EXPECT_EQ(ended_by_then, 0);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kKill), 1);
}
TEST_F(PodsTest, ARequestWhoseRoomAnotherTookIsPlannedAgainAtOnce) {
  RunADearerPodOnB();
  MakeWay();
  ASSERT_THAT(Job(kExpress).plans.back().nodes, ElementsAre(NodeId("a")));
  Gone(kBatchJob);
  SayNode(0);
  EXPECT_THAT(Job(kExpress).plans.back().nodes, ElementsAre(NodeId("b")));
}
// A victim whose pod has not been evicted so far.
TEST_F(PodsTest, AVictimRunsOnWhenItsRequestIsOver) {
  cluster_.slow_kill = {"a"};
  MakeWay();
  ASSERT_EQ(State(kBatchJob), JobState::kKilling);
  Gone(kExpress);
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
}
// Its pods are being deleted, and have not gone.
TEST_F(PodsTest, NobodyMakesWayForARequestThatOnlyEnds) {
  cluster_.slow_kill = {"a"};
  MakeWay();
  ManagedJob ending = Deadline(kExpress);
  ending.phase = ManagedPhase::kEnding;
  Say(ending);
  EXPECT_EQ(State(kExpress), JobState::kCancelled);
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
  ending.state = "as before";
  Say(ending);
  EXPECT_EQ(State(kExpress), JobState::kCancelled) << "it is no new one";
}
// Its pods hold it until they have gone.
TEST_F(PodsTest, WhatARequestHoldsThatOnlyEndsIsFreeForNobody) {
  ManagedJob ending = Deadline(kExpress);
  Say(ending);
  ASSERT_EQ(State(kExpress), JobState::kPending);
  ending.phase = ManagedPhase::kEnding;
  ending.nodes = {NodeId("a")};
  Say(ending);
  ASSERT_EQ(State(kExpress), JobState::kCancelled);
  const JobId next(kExpress.value() + 1);
  Say(Deadline(next));
  engine_->Read([&](const ClusterState& state) {
    EXPECT_FALSE(state.jobs.contains(next)) << "the room is not free, and will be soon";
  });
  Gone(kExpress);
  EXPECT_THAT(manager().desired.kept.at(next).nodes, ElementsAre(NodeId("a")));
}
TEST_F(PodsTest, WhatARequestHoldsThatDoesNotEndIsNotWaitedForForLong) {
  ManagedJob ending = Pod(kExpress, ManagedPhase::kEnding);
  ending.spec = Deadline(kExpress).spec;
  Say(ending);
  const JobId next(kExpress.value() + 1);
  Say(Deadline(next));
  Pass(11s);
  ASSERT_EQ(State(next), JobState::kFailed);
  EXPECT_FALSE(Job(next).plans.back().feasible);
}
// For one that waits in the queue nothing is kept: others would take the room.
TEST_F(PodsTest, AVictimRunsOnWhenItsRequestIsBackInTheQueue) {
  policy_.when_late = WhenLate::kBestEffort;
  engine_->SetPolicy(policy_);
  cluster_.slow_kill = {"a"};
  MakeWay();
  ASSERT_EQ(State(kBatchJob), JobState::kKilling);
  SayNode(4, /*usable=*/false);
  ASSERT_TRUE(Job(kExpress).plans.back().queued) << Job(kExpress).plans.back().refusal;
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
}
// Nor for another one that has no plan.
TEST_F(PodsTest, AVictimRunsOnThoughAnotherRequestMightHaveItsNode) {
  policy_.when_late = WhenLate::kBestEffort;
  engine_->SetPolicy(policy_);
  AddNodes({"b"});
  ManagedJob other = Pod(JobId(43), ManagedPhase::kRunning);
  other.nodes = {NodeId("b")};
  other.spec.methods = {};
  Say(other);
  StartPod("b", JobId(43), {});
  const JobId gang(60);
  ManagedJob both = Deadline(gang);
  both.spec.nodes = 2;
  Say(both);
  cluster_.slow_kill = {"a"};
  MakeWay();
  ASSERT_EQ(State(kBatchJob), JobState::kKilling);
  cluster_.Disconnect("b");
  ManagerChanges gone;
  gone.nodes = {{.id = NodeId("b"), .capacity = {}, .usable = false}};
  engine_->OnManager(std::move(gone));
  Pass(20s);
  ASSERT_FALSE(Job(gang).plans.back().queued) << Job(gang).plans.back().refusal;
  ASSERT_EQ(State(kBatchJob), JobState::kKilling);
  SayNode(4, /*usable=*/false);
  ASSERT_TRUE(Job(kExpress).plans.back().queued) << Job(kExpress).plans.back().refusal;
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
}
TEST_F(PodsTest, AVictimThatIsBeingSavedRunsOnToo) {
  policy_.when_late = WhenLate::kBestEffort;
  engine_->SetPolicy(policy_);
  cluster_.slow_dump = {"a"};
  ManagedJob batch = Pod(kBatchJob, ManagedPhase::kRunning);
  batch.spec.methods = {Method::kCheckpoint};
  Say(batch);
  StartPod("a", kBatchJob, {v1::CHECKPOINT});
  Say(Deadline(kExpress));
  ASSERT_EQ(State(kBatchJob), JobState::kDumping);
  SayNode(4, /*usable=*/false);
  ASSERT_TRUE(Job(kExpress).plans.back().queued) << Job(kExpress).plans.back().refusal;
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
}
TEST_F(PodsTest, AVictimWhosePodEndsIsEnded) {
  cluster_.slow_kill = {"a"};
  MakeWay();
  Say(Pod(kBatchJob, ManagedPhase::kEnding));
  Gone(kExpress);
  EXPECT_EQ(State(kBatchJob), JobState::kKilling);
}
// Its pod is on its node, and nothing of it was seen to run when it was told to leave.
class BeginningVictimTest : public PodsTest {
 protected:
  BeginningVictimTest() {
    cluster_.holds_kill = {"a"};
    cluster_.managed_phase = v1::LAUNCHING;
    MakeWay();
    EXPECT_EQ(State(kBatchJob), JobState::kKilling);
  }
  void ItIsSeenToRun() {
    cluster_.managed_phase = v1::RUNNING;
    StartPod("a", kBatchJob, {v1::KILL});
  }
};

TEST_F(BeginningVictimTest, ItBeginsAfterAllWhenItsRequestIsOver) {
  Gone(kExpress);
  EXPECT_EQ(State(kBatchJob), JobState::kStarting);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kAbort), 1);
  ItIsSeenToRun();
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
  EXPECT_TRUE(Job(kBatchJob).first_started);
}
TEST_F(BeginningVictimTest, ItRunsOnWhenItHasBegunMeanwhile) {
  ItIsSeenToRun();
  EXPECT_EQ(State(kBatchJob), JobState::kKilling);
  Gone(kExpress);
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
  EXPECT_TRUE(Job(kBatchJob).first_started);
}
TEST_F(BeginningVictimTest, ThatItCouldNotBeStartedIsReadWhenItsRequestIsOver) {
  Gone(kExpress);
  ASSERT_EQ(State(kBatchJob), JobState::kStarting);
  cluster_.Report(kBatchJob, v1::LAUNCH_FAILED);
  Settle();
  EXPECT_FALSE(HoldsNodes(State(kBatchJob)));
}
TEST_F(BeginningVictimTest, AnotherRequestMakesItLeaveAgain) {
  Gone(kExpress);
  ASSERT_EQ(State(kBatchJob), JobState::kStarting);
  Say(Deadline(JobId(51)));
  EXPECT_EQ(State(kBatchJob), JobState::kKilling);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kKill), 2);
}
TEST_F(BeginningVictimTest, OneThatMayNotGoBeginsAndAnotherMakesWay) {
  RunADearerPodOnB();
  cluster_.fail_kill = {"a"};
  cluster_.Disconnect("a");
  cluster_.Connect("a");  // it is told again
  Settle();
  EXPECT_TRUE(Job(kBatchJob).lost_methods.contains(Method::kKill));
  EXPECT_EQ(State(kBatchJob), JobState::kStarting);
}
// Its agent holds no order to end it any more, but has begun to carry it out.
TEST_F(BeginningVictimTest, WhatCannotBeTakenBackIsNot) {
  cluster_.holds_kill.clear();
  cluster_.slow_kill = {"a"};
  cluster_.Disconnect("a");
  cluster_.Connect("a");
  Settle();
  Gone(kExpress);
  EXPECT_EQ(State(kBatchJob), JobState::kKilling);
}

TEST_F(PodsTest, AVictimOfWhichAPodEndsAlreadyDoesNotRunOnWhereAnotherMayNotGo) {
  cluster_.slow_kill = {"a"};
  MakeWay();
  Say(Pod(kBatchJob, ManagedPhase::kEnding));
  cluster_.slow_kill.clear();
  cluster_.fail_kill = {"a"};
  cluster_.Disconnect("a");
  cluster_.Connect("a");  // it is told again
  Settle();
  EXPECT_GE(cluster_.Count(v1::ToAgent::kKill), 2);
  EXPECT_EQ(State(kBatchJob), JobState::kKilling);
  EXPECT_FALSE(Job(kBatchJob).lost_methods.contains(Method::kKill));
}
TEST_F(PodsTest, AVictimThatMayNotGoRunsOnAndAnotherMakesWay) {
  RunADearerPodOnB();
  cluster_.fail_kill = {"a"};
  cluster_.slow_kill = {"b"};
  MakeWay();
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
  EXPECT_THAT(Job(kBatchJob).lost_methods.at(Method::kKill), HasSubstr("a disruption budget"));
  EXPECT_THAT(Job(kExpress).plans.back().nodes, ElementsAre(NodeId("b")));
  EXPECT_EQ(State(JobId(43)), JobState::kKilling);
}

TEST_F(PodsTest, WhenItsPodIsGoneItsJobIsOver) {
  MakeWay();
  Gone(kBatchJob);
  EXPECT_EQ(State(kBatchJob), JobState::kCancelled);
  EXPECT_EQ(State(kExpress), JobState::kPending);
}
TEST_F(PodsTest, ARequestWhosePodHasItsNodeAndStartsSlowlyIsNotPlannedAgain) {
  MakeWay();
  Gone(kBatchJob);
  BindExpress();
  Pass(5s);
  EXPECT_EQ(Job(kExpress).plans.size(), 1u);
  EXPECT_TRUE(Job(kExpress).plans.back().feasible);
}
TEST_F(PodsTest, ARequestWhosePodHasItsNodeAndStartsSlowlyTakesNoOtherNode) {
  RunADearerPodOnB();
  MakeWay();
  ASSERT_EQ(Job(kBatchJob).preemptions, 1);
  Gone(kBatchJob);
  BindExpress();
  Pass(5s);
  EXPECT_EQ(Job(JobId(43)).preemptions, 0);
}
TEST_F(PodsTest, ARequestWhosePodHasItsNodeIsNotGivenUpHoweverSlowlyItStarts) {
  MakeWay();
  Gone(kBatchJob);
  BindExpress();
  Pass(300s);
  EXPECT_EQ(State(kExpress), JobState::kPending);
}
TEST_F(PodsTest, ADeadlineThatComesWhileAnAgentIsRestartedIsPlannedWhenItIsBack) {
  SayNode();
  engine_->OnDisconnected(NodeId("a"));
  Say(Deadline(kExpress));
  Pass(2s);
  AddNodes({"a"});
  Pass(2s);
  EXPECT_EQ(State(kExpress), JobState::kPending);
  EXPECT_THAT(manager().desired.kept.at(kExpress).nodes, ElementsAre(NodeId("a")));
}
TEST_F(PodsTest, ADeadlineThatComesWhileTheAgentsDialANewControllerIsPlannedWhenTheyAreThere) {
  StartController();
  SayNode();
  Say(Deadline(kExpress));
  Pass(2s);
  AddNodes({"a"});
  Pass(2s);
  EXPECT_EQ(State(kExpress), JobState::kPending);
  EXPECT_TRUE(manager().desired.kept.contains(kExpress));
}
TEST_F(PodsTest, ADeadlineIsRefusedWhenTheAgentDoesNotComeBack) {
  SayNode();
  engine_->OnDisconnected(NodeId("a"));
  Say(Deadline(kExpress));
  Pass(11s);
  EXPECT_EQ(State(kExpress), JobState::kFailed);
}
TEST_F(PodsTest, ADeadlineThatIsNearDoesNotWaitForAnAgentLong) {
  SayNode();
  engine_->OnDisconnected(NodeId("a"));
  ManagedJob express = Deadline(kExpress);
  express.spec.start_by = clock_.Now() + 8s;
  Say(express);
  Pass(3s);
  EXPECT_EQ(State(kExpress), JobState::kFailed);
}
TEST_F(PodsTest, ADeadlineThatIsTakenBackWhileAnAgentIsRestartedIsNoJob) {
  SayNode();
  engine_->OnDisconnected(NodeId("a"));
  Say(Deadline(kExpress));
  Gone(kExpress);
  AddNodes({"a"});
  Pass(2s);
  EXPECT_FALSE(manager().desired.kept.contains(kExpress));
}
// A controller that has just begun knows from its journal who is in the way, and from the agent that it
// lives; how fast its image can be written is told with the first heartbeat.
class JustBegunTest : public PodsTest {
 protected:
  JustBegunTest() {
    const ManagedJob batch = Pod(kBatchJob, ManagedPhase::kRunning);
    Say(batch);
    StartPod("a", kBatchJob, {v1::CHECKPOINT});
    StartController();
    v1::Hello hello;
    hello.set_node("a");
    hello.mutable_capacity()->set_slots(4);
    hello.mutable_capacity()->set_memory(8LL << 30);
    v1::TaskReport& task = *hello.add_tasks();
    task.mutable_task()->set_job(kBatchJob.value());
    task.mutable_task()->set_incarnation(1);
    task.set_phase(v1::RUNNING);
    task.set_memory(1 << 20);
    EXPECT_TRUE(engine_->OnConnected(NodeId("a"), hello).ok());
    Say(batch);
    Say(Deadline(kExpress));
  }
  bool IsDecided() {
    bool decided = false;
    engine_->Read([&](const ClusterState& state) { decided = state.jobs.contains(kExpress); });
    return decided;
  }
};

TEST_F(JustBegunTest, ADeadlineWaitsUntilItIsKnownHowWhoIsInTheWayCanLeave) {
  EXPECT_FALSE(IsDecided());
  cluster_.Heartbeat("a");
  Pass(2s);
  ASSERT_TRUE(IsDecided());
  EXPECT_THAT(manager().desired.kept.at(kExpress).nodes, ElementsAre(NodeId("a")));
}
TEST_F(JustBegunTest, ADeadlineIsRefusedWhenThatIsNotSaid) {
  Pass(8s);
  ASSERT_TRUE(IsDecided());
  EXPECT_EQ(State(kExpress), JobState::kFailed);
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
}

TEST_F(PodsTest, OneThatWaitsForNodesGetsThemWhenTheyAreFree) {
  Policy policy;
  policy.when_late = WhenLate::kQueue;
  engine_->SetPolicy(policy);
  ManagedJob busy = Pod(kBatchJob, ManagedPhase::kRunning);
  busy.spec.kind = JobKind::kOnDemand;
  busy.spec.methods = {};
  busy.spec.start_by = clock_.Now() + 60s;
  busy.spec.hold = 1h;
  Say(busy);
  ManagedJob express = Pod(kExpress, ManagedPhase::kWaiting);
  express.spec.kind = JobKind::kOnDemand;
  express.spec.methods = {};
  express.spec.start_by = clock_.Now() + 60s;
  Say(express);
  ASSERT_FALSE(Job(kExpress).plans.empty());
  EXPECT_TRUE(Job(kExpress).plans.front().queued);
  Gone(kBatchJob);
  for (int i = 0; i < 30; ++i) {
    clock_.Advance(100ms);
    engine_->Tick();
  }
  ASSERT_TRUE(manager().desired.kept.contains(kExpress));
  EXPECT_THAT(manager().desired.kept.at(kExpress).nodes, ElementsAre(NodeId("a")));
}
TEST_F(PodsTest, TheMarginBeforeADeadlineIsKeptFree) {
  ManagedJob express = Pod(kExpress, ManagedPhase::kWaiting);
  express.spec.kind = JobKind::kOnDemand;
  express.spec.methods = {};
  express.spec.start_by = clock_.Now() + policy_.margin / 2;
  Say(express);
  EXPECT_FALSE(manager().desired.kept.contains(kExpress));
}
TEST_F(PodsTest, OneWhosePodWentBeforeItBeganIsOver) {
  BeginBatch();
  StartController();  // it went while none was there
  AddNodes({"a"});
  Say(Pod(kExpress, ManagedPhase::kOver));
  EXPECT_TRUE(IsTerminal(State(kBatchJob)));
}
TEST_F(PodsTest, OneThatItsNodeDoesNotKnowAnyMoreIsNotAwaitedThere) {
  BeginBatch();
  engine_->OnDisconnected(NodeId("a"));
  AddNodes({"a"});  // another machine of its name
  Settle();
  EXPECT_FALSE(HoldsNodes(State(kBatchJob)));  // its next pod may start
}
TEST_F(PodsTest, SidingStartsNothing) {
  MakeWay();
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kLaunch), 0);
}

// One that an operator has suspended. To its manager it has all that it requested.
class SuspendedPodTest : public PodsTest {
 protected:
  SuspendedPodTest() {
    manager().continuing = true;
    Say(Pod(kBatchJob, ManagedPhase::kRunning));
    StartPod("a", kBatchJob, {v1::SUSPEND, v1::CHECKPOINT});
    EXPECT_TRUE(engine_->Suspend(kRoot, kBatchJob).ok());
    Settle();
    EXPECT_EQ(State(kBatchJob), JobState::kSuspended);
  }
  // Told, and not done as yet.
  void BeginToVacate() {
    cluster_.slow_dump = {"a"};
    ASSERT_TRUE(engine_->Vacate(kRoot, kBatchJob, Tier::kShared).ok());
    Settle();
    ASSERT_EQ(State(kBatchJob), JobState::kDumping);
  }
};

TEST_F(SuspendedPodTest, ItsNodeIsNobodyElses) {
  Say(Deadline(kExpress));
  EXPECT_THAT(manager().desired.kept, IsEmpty());
  EXPECT_EQ(State(kBatchJob), JobState::kSuspended);
}
TEST_F(SuspendedPodTest, NorIsItWhileItIsBeingSuspended) {
  ASSERT_TRUE(engine_->Resume(kRoot, kBatchJob).ok());
  Settle();
  cluster_.slow_suspend = {"a"};
  ASSERT_TRUE(engine_->Suspend(kRoot, kBatchJob).ok());
  Settle();
  ASSERT_EQ(State(kBatchJob), JobState::kSuspending);
  Say(Deadline(kExpress));
  EXPECT_THAT(manager().desired.kept, IsEmpty());
}
TEST_F(SuspendedPodTest, WhoeverIsRefusedForItIsToldWhatCanBeDone) {
  Say(Deadline(kExpress));
  EXPECT_THAT(Job(kExpress).plans.back().refusal, HasSubstr("resume or vacate it"));
}
TEST_F(SuspendedPodTest, AnotherMakesWayInItsPlace) {
  RunADearerPodOnB();
  Say(Deadline(kExpress));
  EXPECT_THAT(manager().desired.kept.at(kExpress).nodes, ElementsAre(NodeId("b")));
}
TEST_F(SuspendedPodTest, SuspendedBehindAPlanItGivesItsNodeToNobodyEither) {
  ASSERT_TRUE(engine_->Resume(kRoot, kBatchJob).ok());
  Settle();
  RunADearerPodOnB();
  ManagedJob express = Deadline(kExpress);
  express.spec.not_before = express.spec.start_by - 10s;
  Say(express);
  ASSERT_THAT(Job(kExpress).plans.back().nodes, ElementsAre(NodeId("a")));
  ASSERT_TRUE(engine_->Suspend(kRoot, kBatchJob).ok());
  Settle();
  EXPECT_THAT(Job(kExpress).plans.back().nodes, ElementsAre(NodeId("b")));
}
TEST_F(SuspendedPodTest, ItCanBeVacated) {
  ASSERT_TRUE(engine_->Vacate(kRoot, kBatchJob, Tier::kShared).ok());
  Settle();
  EXPECT_EQ(State(kBatchJob), JobState::kParked);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kResume), 0);
  EXPECT_EQ(manager().desired.next.at(kBatchJob).how, DesiredState::Next::How::kImage);
}
TEST_F(SuspendedPodTest, OneThatCannotBeSavedStaysSuspended) {
  cluster_.fail_dump = {"a"};
  ASSERT_TRUE(engine_->Vacate(kRoot, kBatchJob, Tier::kShared).ok());
  Settle();
  EXPECT_EQ(State(kBatchJob), JobState::kSuspended);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kResume), 0);
}
TEST_F(SuspendedPodTest, WhileItLeavesItsNodeIsPlannedWith) {
  BeginToVacate();
  Say(Deadline(kExpress));
  EXPECT_THAT(manager().desired.kept.at(kExpress).nodes, ElementsAre(NodeId("a")));
}
TEST_F(SuspendedPodTest, ItsDumpIsNotWaitedForLongerThanOthers) {
  BeginToVacate();
  EXPECT_GT(cluster_.Last(v1::ToAgent::kDump).dump().patience_us(), 0);
}
TEST_F(SuspendedPodTest, WhereItsManagerWouldKeepItSuspendedItLeavesNeitherWay) {
  manager().continuing = false;
  EXPECT_THAT(engine_->Vacate(kRoot, kBatchJob, Tier::kShared).message(), HasSubstr("resume it first"));
  EXPECT_THAT(engine_->Migrate(kRoot, kBatchJob, {NodeId("b")}).message(), HasSubstr("resume it first"));
}

class QueueTest : public ManagerTest {
 protected:
  QueueTest() : ManagerTest({"a", "b"}) {
    tasks_.set_cluster_manager("manager");
    tasks_.set_uid(kAda.uid);
    for (v1::Method method : {v1::SUSPEND, v1::CHECKPOINT}) tasks_.add_methods(method);
  }
  const DesiredState& Desired() { return manager().desired; }

  ManagedJob Managed(JobId id, ManagedPhase phase, std::vector<NodeId> nodes = {}, int starts = 1) {
    ManagedJob job;
    job.id = id;
    job.phase = phase;
    job.spec = Batch(std::max<int>(1, static_cast<int>(nodes.size())), {});
    job.spec.cluster_manager = "manager";
    job.spec.uid = kAda.uid;
    job.spec.user = kAda.user;
    job.nodes = std::move(nodes);
    job.starts = starts;
    if (phase != ManagedPhase::kWaiting) job.started = clock_.Now();
    return job;
  }
  ManagedJob Express(ManagedPhase phase, std::vector<NodeId> nodes = {}) {
    ManagedJob job = Managed(kExpress, phase, std::move(nodes));
    job.spec.kind = JobKind::kOnDemand;
    job.spec.uid = kBob.uid;
    job.spec.user = kBob.user;
    job.spec.start_by = start_by_;
    return job;
  }
  void Task(const char* node, int incarnation = 1, const std::string& checkpoint = "") {
    cluster_.StartManaged(node, tasks_, kBatchJob.value(), incarnation, checkpoint);
    Settle();
  }
  // The batch job runs on a, another that siding does not know on b.
  void Fill() {
    Say(Managed(kBatchJob, ManagedPhase::kRunning, {NodeId("a")}));
    Task("a");
    Say(Managed(JobId(43), ManagedPhase::kRunning, {NodeId("b")}));
  }
  // The express has come, and the batch job has left for it.
  void MakeWay() {
    Fill();
    Say(Express(ManagedPhase::kWaiting));
    ASSERT_EQ(State(kBatchJob), JobState::kParked);
    Say(Managed(kBatchJob, ManagedPhase::kWaiting));
  }
  bool Knows(JobId id) {
    bool knows = false;
    engine_->Read([&](const ClusterState& state) { knows = state.jobs.contains(id); });
    return knows;
  }

  const Time start_by_ = clock_.Now() + 60s;
  v1::JobSpec tasks_;
};

TEST_F(QueueTest, ItsQueueIsNotSidings) {
  EXPECT_THAT(std::string(engine_->Submit(kAda, Batch()).status().message()),
              HasSubstr("submitted to manager"));
}

TEST_F(QueueTest, ATaskIsFollowedOnceTheQueueKnowsItsJob) {
  Task("a");
  EXPECT_FALSE(Knows(kBatchJob));
  Say(Managed(kBatchJob, ManagedPhase::kRunning, {NodeId("a")}));
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
}

TEST_F(QueueTest, AJobHoldsWhatTheQueueSays) {
  Fill();
  EXPECT_EQ(Job(kBatchJob).spec.per_node.slots, 4);
  EXPECT_EQ(Job(kBatchJob).spec.user, "ada");
}

TEST_F(QueueTest, AScriptOnOneOfTwoNodesIsNotTheWholeJob) {
  Say(Managed(kBatchJob, ManagedPhase::kRunning, {NodeId("a"), NodeId("b")}));
  Task("a");
  EXPECT_FALSE(Knows(kBatchJob));
}

TEST_F(QueueTest, ADeadlineJobIsPlannedWhenItIsSeen) {
  Fill();
  Say(Express(ManagedPhase::kWaiting));
  EXPECT_EQ(State(kExpress), JobState::kPending);
  EXPECT_EQ(State(kBatchJob), JobState::kParked);
}

TEST_F(QueueTest, ABatchJobThatEndsInTimeByItsLimitDoesNotMakeWay) {
  Fill();
  ManagedJob batch = Managed(kBatchJob, ManagedPhase::kRunning, {NodeId("a")});
  batch.ends_by = clock_.Now() + 30s;
  Say(batch);
  Say(Express(ManagedPhase::kWaiting));
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
  EXPECT_THAT(Desired().kept.at(kExpress).nodes, ElementsAre(NodeId("a")));
}

TEST_F(QueueTest, ItsNodesAreKeptForIt) {
  MakeWay();
  ASSERT_TRUE(Desired().kept.contains(kExpress));
  EXPECT_THAT(Desired().kept.at(kExpress).nodes, ElementsAre(NodeId("a")));
  EXPECT_EQ(Desired().kept.at(kExpress).user, "bob");
}

TEST_F(QueueTest, TheVictimIsToldForWhomItMakesWay) {
  MakeWay();
  EXPECT_THAT(Desired().jobs.at(kBatchJob).why, testing::StartsWith("makes way for job 50"));
}

// Also one that was told to leave for nobody. Why it is there has nothing to do with it.
TEST_F(QueueTest, WhoComesBackGoesBeforeItsSiblings) {
  Fill();
  EXPECT_FALSE(Desired().jobs.contains(kBatchJob));
  ASSERT_TRUE(engine_->Vacate(kRoot, kBatchJob, Tier::kShared).ok());
  Settle();
  Say(Managed(kBatchJob, ManagedPhase::kWaiting));
  EXPECT_TRUE(Desired().jobs.at(kBatchJob).before_siblings);
  EXPECT_EQ(Desired().jobs.at(kBatchJob).why, "");
  Say(Managed(kBatchJob, ManagedPhase::kRunning, {NodeId("b")}, 2));
  Task("b", 2, "manager-42.1");
  EXPECT_FALSE(Desired().jobs.contains(kBatchJob));
}

TEST_F(QueueTest, FreeNodesAreKeptWithoutAVictim) {
  Say(Express(ManagedPhase::kWaiting));
  EXPECT_EQ(Desired().kept.at(kExpress).nodes.size(), 1u);
}

TEST_F(QueueTest, SidingDoesNotStartIt) {
  Say(Express(ManagedPhase::kWaiting));
  EXPECT_EQ(State(kExpress), JobState::kPending);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kLaunch), 0);
}

TEST_F(QueueTest, ItRunsWhenTheQueueSaysSo) {
  MakeWay();
  Say(Express(ManagedPhase::kRunning, {NodeId("a")}));
  EXPECT_EQ(State(kExpress), JobState::kRunning);
  EXPECT_TRUE(Job(kExpress).first_started.has_value());
}

TEST_F(QueueTest, ItEndsWhenTheQueueSaysSo) {
  Say(Express(ManagedPhase::kRunning, {NodeId("a")}));
  ManagedJob over = Express(ManagedPhase::kOver);
  over.succeeded = true;
  Say(over);
  EXPECT_EQ(State(kExpress), JobState::kDone);
  EXPECT_THAT(Desired().kept, IsEmpty());
}

TEST_F(QueueTest, OneThatFailedHasFailed) {
  Say(Express(ManagedPhase::kRunning, {NodeId("a")}));
  Say(Express(ManagedPhase::kOver));
  EXPECT_EQ(State(kExpress), JobState::kFailed);
}

TEST_F(QueueTest, OneThatWasCancelledWhileItWaitsFreesItsVictim) {
  cluster_.slow_dump = {"a"};
  Fill();
  Say(Express(ManagedPhase::kWaiting));
  ASSERT_EQ(State(kBatchJob), JobState::kDumping);
  Say(Express(ManagedPhase::kOver));
  EXPECT_EQ(State(kExpress), JobState::kCancelled);
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
}

TEST_F(QueueTest, OneThatIsRequeuedIsPlannedAgain) {
  Say(Express(ManagedPhase::kRunning, {NodeId("a")}));
  Say(Express(ManagedPhase::kWaiting));
  EXPECT_EQ(State(kExpress), JobState::kPending);
  EXPECT_TRUE(Desired().kept.contains(kExpress));
}

TEST_F(QueueTest, WhatTheManagerForgotIsOver) {
  Say(Express(ManagedPhase::kRunning, {NodeId("a")}));
  Gone(kExpress);
  EXPECT_EQ(State(kExpress), JobState::kFailed);
}

TEST_F(QueueTest, OneThatMayNotIsRefusedAndWaitsLikeAnyOther) {
  policy_.on_demand = {OnDemandRule{}};
  policy_.on_demand.front().allowed = false;
  engine_->SetPolicy(policy_);
  Fill();
  Say(Express(ManagedPhase::kWaiting));
  EXPECT_EQ(State(kExpress), JobState::kFailed);
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
  EXPECT_THAT(Desired().kept, IsEmpty());
  EXPECT_THAT(Desired().jobs.at(kExpress).why, HasSubstr("does not let bob ask for on-demand jobs"));
}

TEST_F(QueueTest, AParkedJobThatWasCancelledIsCancelled) {
  MakeWay();
  Say(Managed(kBatchJob, ManagedPhase::kOver));
  EXPECT_EQ(State(kBatchJob), JobState::kCancelled);
}

TEST_F(QueueTest, AParkedJobComesBackWhereTheManagerPutsIt) {
  MakeWay();
  Say(Managed(kBatchJob, ManagedPhase::kRunning, {NodeId("b")}, 2));
  Task("b", 2, "manager-42.1");
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
  EXPECT_FALSE(Desired().jobs.contains(kBatchJob));
}

// ---- The manager ends a job and queues it again by itself: for the engine it has ended. ----

// Though only operators resume what is frozen.
TEST_F(QueueTest, AnOrderThatWaitsIsTakenBackByWhoeverMayGiveIt) {
  Fill();
  ASSERT_TRUE(engine_->Checkpoint(kAda, kBatchJob, Tier::kShared).ok());
  ASSERT_TRUE(engine_->Vacate(kAda, kBatchJob, Tier::kShared).ok());
  ASSERT_TRUE(Job(kBatchJob).waiting_order);
  EXPECT_EQ(engine_->Resume(kAda, kBatchJob), absl::OkStatus());
  EXPECT_FALSE(Job(kBatchJob).waiting_order);
  EXPECT_TRUE(absl::IsPermissionDenied(engine_->Resume(kAda, kBatchJob)));
}

class RequeuedTest : public QueueTest {
 protected:
  void RequeueAfterEnd(int code) {
    Fill();
    EXPECT_TRUE(engine_->Checkpoint(kAda, kBatchJob, Tier::kShared).ok());
    Settle();
    cluster_.Exit(kBatchJob, 0, code);
    Settle();
    Say(Managed(kBatchJob, ManagedPhase::kWaiting));
  }
  int Deletions() { return cluster_.Count(v1::ToAgent::kDelete); }
};

TEST_F(RequeuedTest, ImagesOfOneThatFailedStayAsLongAsItWaits) {
  engine_->SetRetention({1h, 1000});
  RequeueAfterEnd(1);
  clock_.Advance(2h);
  Settle();
  EXPECT_EQ(Deletions(), 0);
}

TEST_F(RequeuedTest, ImagesOfOneThatSeemedToBeDoneStayAsLongAsItWaits) {
  RequeueAfterEnd(0);
  ASSERT_EQ(State(kBatchJob), JobState::kDone);
  EXPECT_EQ(Deletions(), 0);
}

TEST_F(RequeuedTest, ANewControllerKeepsThemUntilItHasSeenTheQueue) {
  RequeueAfterEnd(0);
  StartController();
  cluster_.Connect("a");
  Settle();
  EXPECT_EQ(Deletions(), 0);
}

TEST_F(RequeuedTest, ANewControllerDeletesThemIfItIsNotThere) {
  RequeueAfterEnd(0);
  StartController();
  cluster_.Connect("a");
  engine_->OnManager({});
  Settle();
  EXPECT_EQ(Deletions(), 1);
}

TEST_F(RequeuedTest, TheyGoWhenItIsOver) {
  RequeueAfterEnd(0);
  Gone(kBatchJob);
  EXPECT_EQ(Deletions(), 1);
}

TEST_F(QueueTest, ADrainedNodeIsNotPlannedWith) {
  ManagerChanges changes;
  changes.nodes = {ManagedNode{.id = NodeId("a"), .capacity = {4, Bytes{8LL << 30}, 0}, .usable = false}};
  engine_->OnManager(std::move(changes));
  Say(Express(ManagedPhase::kWaiting));
  EXPECT_THAT(Desired().kept.at(kExpress).nodes, ElementsAre(NodeId("b")));
}

TEST_F(QueueTest, AVictimWhoseImageIsLostWithItsNodeMayStartAnywhere) {
  Fill();
  ASSERT_TRUE(engine_->Vacate(kRoot, kBatchJob, Tier::kLocal).ok());
  Settle();
  Say(Managed(kBatchJob, ManagedPhase::kWaiting));
  ASSERT_THAT(Desired().jobs.at(kBatchJob).nodes, ElementsAre(NodeId("a")));
  cluster_.Disconnect("a");
  ASSERT_TRUE(engine_->Lose(kRoot, NodeId("a")).ok());
  EXPECT_THAT(Desired().jobs.at(kBatchJob).nodes, IsEmpty());
}

TEST_F(QueueTest, ANodeThatTheManagerUsesIsNotLost) {
  cluster_.Disconnect("a");
  const auto say = [&](bool usable) {
    ManagerChanges changes;
    changes.nodes = {ManagedNode{.id = NodeId("a"), .capacity = {4, Bytes{8LL << 30}, 0}, .usable = usable}};
    engine_->OnManager(std::move(changes));
  };
  say(true);
  EXPECT_EQ(engine_->Lose(kRoot, NodeId("a")).message(),
            "node a is in use by manager, which has to be told first that it is down");
  say(false);
  EXPECT_TRUE(engine_->Lose(kRoot, NodeId("a")).ok());
}

TEST_F(QueueTest, WhoAsksIsToldWhoHasTheQueue) { EXPECT_EQ(engine_->ClusterManager(), "manager"); }

TEST_F(QueueTest, OnlyNodesOfItsPartitionArePlannedWith) {
  manager().nodes = {NodeId("b")};
  Say(Express(ManagedPhase::kWaiting));
  EXPECT_THAT(Desired().kept.at(kExpress).nodes, ElementsAre(NodeId("b")));
}

TEST_F(QueueTest, AJobThatSidingCannotMoveHoldsItsNode) {
  Say(Managed(JobId(43), ManagedPhase::kRunning, {NodeId("a")}));
  Say(Express(ManagedPhase::kWaiting));
  EXPECT_THAT(Desired().kept.at(kExpress).nodes, ElementsAre(NodeId("b")));
}

TEST_F(QueueTest, AFrozenJobIsSuspendedThereTooAndItsNodesStayKept) {
  manager().can.freezing_frees_slots = true;
  Fill();
  Say(Express(ManagedPhase::kWaiting));
  ASSERT_EQ(State(kBatchJob), JobState::kSuspended);
  EXPECT_TRUE(Desired().jobs.at(kBatchJob).suspended);
  Say(Express(ManagedPhase::kRunning, {NodeId("a")}));
  EXPECT_TRUE(Desired().jobs.at(kBatchJob).suspended);
  ManagedJob over = Express(ManagedPhase::kOver);
  over.succeeded = true;
  Say(over);
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
  EXPECT_FALSE(Desired().jobs.contains(kBatchJob));
  EXPECT_THAT(Desired().kept, IsEmpty());
}

TEST_F(QueueTest, AJobThatCannotReturnToItsNodesLeavesNoImageThere) {
  Fill();
  ManagedJob job = Managed(kBatchJob, ManagedPhase::kRunning, {NodeId("a")});
  job.can_be_pinned = false;
  Say(job);
  Say(Express(ManagedPhase::kWaiting));
  bool shared = false;
  engine_->Read([&](const ClusterState& state) {
    shared = state.checkpoints.at(CheckpointId("manager-42.1")).tier == Tier::kShared;
  });
  EXPECT_TRUE(shared);
}

TEST_F(QueueTest, AVictimIsToStartWhereItsImageLies) {
  Fill();
  ASSERT_TRUE(engine_->Vacate(kRoot, kBatchJob, Tier::kLocal).ok());
  Settle();
  EXPECT_THAT(Desired().jobs.at(kBatchJob).nodes, ElementsAre(NodeId("a")));
}

// Whatever is idle beside it.
TEST_F(QueueTest, AndWhyItWaitsForThatNodeAloneIsSaid) {
  Fill();
  ASSERT_TRUE(engine_->Vacate(kRoot, kBatchJob, Tier::kLocal).ok());
  Settle();
  EXPECT_EQ(engine_->WhyWaits(Job(kBatchJob)),
            "waits in the queue of manager for node a: its image is there alone");
  EXPECT_EQ(Desired().jobs.at(kBatchJob).why, "continues on a, where alone its image is");
}

TEST_F(QueueTest, ANewControllerDesiresTheSame) {
  MakeWay();
  const DesiredState before = Desired();
  manager().desired = {};
  StartController();
  cluster_.Connect("a");
  cluster_.Connect("b");
  ManagerChanges changes;
  changes.jobs = {Managed(kBatchJob, ManagedPhase::kWaiting), Express(ManagedPhase::kWaiting),
                  Managed(JobId(43), ManagedPhase::kRunning, {NodeId("b")})};
  engine_->OnManager(std::move(changes));
  EXPECT_EQ(Desired(), before);
}

TEST_F(QueueTest, ANewControllerRecordsWhatEndedMeanwhile) {
  MakeWay();
  StartController();
  ManagerChanges changes;
  changes.jobs = {Managed(JobId(43), ManagedPhase::kRunning, {NodeId("b")})};
  engine_->OnManager(std::move(changes));
  EXPECT_EQ(State(kBatchJob), JobState::kCancelled);
  EXPECT_EQ(State(kExpress), JobState::kCancelled);
}

class QueueInOutage : public QueueTest {
 protected:
  QueueInOutage() {
    journal_.reset(disk_);
    StartController();
    for (const char* node : {"a", "b"}) cluster_.Connect(node);
  }
  FullJournal* const disk_ = new FullJournal;
};

TEST_F(QueueInOutage, WhatEndedMeanwhileIsRecordedWhenTheDiskHasRoomAgain) {
  MakeWay();
  StartController();
  disk_->full = true;
  EXPECT_FALSE(engine_->Cordon(kRoot, NodeId("a"), true).ok());
  ManagerChanges changes;
  changes.jobs = {Managed(JobId(43), ManagedPhase::kRunning, {NodeId("b")})};
  engine_->OnManager(std::move(changes));
  disk_->full = false;
  Settle(10);
  EXPECT_EQ(State(kBatchJob), JobState::kCancelled);
  EXPECT_EQ(State(kExpress), JobState::kCancelled);
}

TEST_F(QueueTest, ANewControllerTakesBackWhatIsNotDesired) {
  StartController();
  const int before = manager().times;
  engine_->OnManager({});
  EXPECT_GT(manager().times, before);
}

TEST_F(QueueTest, TasksOfAStepAreOneJob) {
  tasks_.set_nodes(2);
  Say(Managed(kBatchJob, ManagedPhase::kRunning, {NodeId("a"), NodeId("b")}));
  cluster_.StartManaged("a", tasks_, kBatchJob.value(), 1, "", 65536);
  Settle();
  EXPECT_FALSE(Knows(kBatchJob));
  cluster_.StartManaged("b", tasks_, kBatchJob.value(), 1, "", 65537);
  Settle();
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
  ASSERT_TRUE(engine_->Vacate(kRoot, kBatchJob, Tier::kShared).ok());
  Settle();
  EXPECT_EQ(State(kBatchJob), JobState::kParked);
}

// A script and the step that it started, with this many tasks on a.
class StepTest : public QueueTest {
 protected:
  StepTest() {
    Say(Managed(kBatchJob, ManagedPhase::kRunning, {NodeId("a")}));
    Task("a");
    StartStep(65536);
  }
  void StartStep(int rank) {
    cluster_.StartManaged("a", tasks_, kBatchJob.value(), 1, "", rank);
    Settle();
  }
};

TEST_F(StepTest, AStepStandsForTheJobThatStartedIt) { EXPECT_EQ(Job(kBatchJob).first_rank, 65536); }

TEST_F(StepTest, ItLeavesForTheJob) {
  ASSERT_TRUE(engine_->Vacate(kRoot, kBatchJob, Tier::kShared).ok());
  Settle();
  EXPECT_EQ(State(kBatchJob), JobState::kParked);
}

TEST_F(StepTest, WhenItHasEndedTheScriptGoesOn) {
  cluster_.Exit(kBatchJob, 65536, 3);
  Settle();
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
  EXPECT_EQ(Job(kBatchJob).first_rank, 0);
}

TEST_F(StepTest, TheNextOneStandsForItAgain) {
  cluster_.Exit(kBatchJob, 65536, 0);
  StartStep(2 * 65536);
  EXPECT_EQ(Job(kBatchJob).first_rank, 2 * 65536);
}

TEST_F(StepTest, TheJobEndsAsItsScript) {
  cluster_.Exit(kBatchJob, 65536, 3);
  cluster_.Exit(kBatchJob, 0, 0);
  Settle();
  EXPECT_EQ(State(kBatchJob), JobState::kDone);
}

// Without a script that carries the flag: salloc, or only some of its steps do.
class AloneStepTest : public QueueTest {
 protected:
  AloneStepTest() {
    Say(Managed(kBatchJob, ManagedPhase::kRunning, {NodeId("a")}));
    StartStep(65536);
    cluster_.Exit(kBatchJob, 65536, 1);
    Settle();
  }
  void StartStep(int rank) {
    cluster_.StartManaged("a", tasks_, kBatchJob.value(), 1, "", rank);
    Settle();
  }
};

TEST_F(AloneStepTest, AStepsEndIsNotTheJobs) { EXPECT_EQ(State(kBatchJob), JobState::kRunning); }

TEST_F(AloneStepTest, TheNextStepIsFollowedAndNotKilled) {
  StartStep(2 * 65536);
  EXPECT_EQ(Job(kBatchJob).first_rank, 2 * 65536);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kKill), 0);
}

TEST_F(AloneStepTest, BetweenTwoStepsItDoesNotMakeWay) {
  Say(Managed(JobId(43), ManagedPhase::kRunning, {NodeId("b")}));
  Say(Express(ManagedPhase::kWaiting));
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
}

TEST_F(AloneStepTest, ItEndsWhenTheQueueSaysSo) {
  Say(Managed(kBatchJob, ManagedPhase::kOver));
  EXPECT_EQ(State(kBatchJob), JobState::kFailed);
}

TEST_F(QueueTest, WithTwoStepsAtATimeItDoesNotMakeWay) {
  Say(Managed(kBatchJob, ManagedPhase::kRunning, {NodeId("a")}));
  Say(Managed(JobId(43), ManagedPhase::kRunning, {NodeId("b")}));
  for (int rank : {65536, 2 * 65536}) cluster_.StartManaged("a", tasks_, kBatchJob.value(), 1, "", rank);
  Settle();
  Say(Express(ManagedPhase::kWaiting));
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
}

TEST_F(QueueTest, ANumberThatIsUsedAgainIsAnotherJobs) {
  Fill();
  cluster_.Exit(kBatchJob, 0, 0);
  Settle();
  ASSERT_EQ(State(kBatchJob), JobState::kDone);
  ManagedJob again = Managed(kBatchJob, ManagedPhase::kRunning, {NodeId("a")});
  again.submitted = clock_.Now();
  Say(again);
  Task("a");
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
}

TEST_F(QueueTest, OneThatWasStartedAgainIsPlannedWithAndLeavesWhenItIsReported) {
  policy_.cooldown = policy_.min_runtime = 0s;
  engine_->SetPolicy(policy_);
  MakeWay();
  Say(Express(ManagedPhase::kOver));
  Say(Managed(kBatchJob, ManagedPhase::kRunning, {NodeId("a")}, 2));
  ManagedJob other = Express(ManagedPhase::kWaiting);
  other.id = JobId(51);
  Say(other);
  EXPECT_TRUE(Desired().kept.contains(JobId(51)));
  EXPECT_EQ(State(kBatchJob), JobState::kParked);
  Task("a", 2, "manager-42.1");
  EXPECT_EQ(Job(kBatchJob).checkpoints.back(), CheckpointId("manager-42.2"));
}

TEST_F(QueueTest, OneThatIsHeldIsNotPlannedFor) {
  ManagedJob held = Express(ManagedPhase::kWaiting);
  held.may_start = false;
  Say(held);
  EXPECT_FALSE(Knows(kExpress));
  Say(Express(ManagedPhase::kWaiting));
  EXPECT_TRUE(Desired().kept.contains(kExpress));
  Say(held);
  EXPECT_THAT(Desired().kept, IsEmpty());
  Say(Express(ManagedPhase::kWaiting));
  EXPECT_TRUE(Desired().kept.contains(kExpress));
}

TEST_F(QueueTest, OneThatTheManagerDoesNotStartHasItsNodesForAWhileOnly) {
  MakeWay();
  Settle(240);
  EXPECT_EQ(State(kExpress), JobState::kFailed);
  EXPECT_THAT(Job(kExpress).reason, HasSubstr("manager did not start it"));
  EXPECT_THAT(Desired().kept, IsEmpty());
}

TEST_F(QueueTest, AnAgentThatDialsAgainCostsNoVictim) {
  ManagerChanges changes;
  for (const char* node : {"a", "b"})
    changes.nodes.push_back({.id = NodeId(node), .capacity = {4, Bytes{8LL << 30}, 0}});
  engine_->OnManager(std::move(changes));
  Say(Managed(JobId(43), ManagedPhase::kRunning, {NodeId("a")}));
  Say(Express(ManagedPhase::kWaiting));
  cluster_.Disconnect("b");
  Settle(4);
  EXPECT_EQ(Job(kExpress).plans.size(), 1u);
}

TEST_F(QueueTest, OneThatWasSuspendedThereIsLeftAlone) {
  Fill();
  ManagedJob job = Managed(kBatchJob, ManagedPhase::kRunning, {NodeId("a")});
  job.suspended = true;
  Say(job);
  Say(Express(ManagedPhase::kWaiting));
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
  EXPECT_FALSE(engine_->Vacate(kRoot, kBatchJob, Tier::kShared).ok());
}

TEST_F(QueueTest, OneThatMustNotLeaveIsNoVictim) {
  Fill();
  ManagedJob job = Managed(kBatchJob, ManagedPhase::kRunning, {NodeId("a")});
  job.kept_by = "a disruption budget";
  Say(job);
  Say(Express(ManagedPhase::kWaiting));
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
  EXPECT_THAT(Desired().kept, IsEmpty());
}

TEST_F(QueueTest, OnlyOperatorsSuspend) {
  Fill();
  EXPECT_TRUE(absl::IsPermissionDenied(engine_->Suspend(kAda, kBatchJob)));
}

TEST_F(QueueTest, APromiseIsKeptAndAMarkByHandIsNotOne) {
  Say(Managed(JobId(43), ManagedPhase::kRunning, {NodeId("b")}));
  Say(Managed(kBatchJob, ManagedPhase::kRunning, {NodeId("a")}));
  Task("a");
  cluster_.memory = 60LL << 30;  // a minute's dump
  Task("a");
  ManagedJob late = Express(ManagedPhase::kWaiting);
  late.spec.start_by = clock_.Now() + 10s;
  Say(late);
  EXPECT_THAT(Desired().kept, IsEmpty());
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
}

// ---- It is in the manager's queue, and its deadline cannot be met now. ----

const JobId kOther(43);

class TooFullTest : public QueueTest {
 protected:
  // Jobs that siding cannot move are on both nodes.
  TooFullTest() {
    SayOther(ManagedPhase::kRunning);
    Say(Managed(JobId(44), ManagedPhase::kRunning, {NodeId("b")}));
    Say(Express(ManagedPhase::kWaiting));
  }
  void SayOther(ManagedPhase phase) { Say(Managed(kOther, phase, {NodeId("a")})); }
};

TEST_F(TooFullTest, ItWaitsItsTurnAndItsUserIsTold) {
  EXPECT_EQ(State(kExpress), JobState::kPending);
  EXPECT_THAT(Desired().jobs.at(kExpress).why,
              HasSubstr("waits its turn, no job makes way: only 0 of 1 node"));
}

TEST_F(TooFullTest, WhoAsksWhyItWaitsIsToldToo) {
  engine_->Read([&](const ClusterState& state) {
    EXPECT_THAT(engine_->WhyWaits(state.jobs.at(kExpress)),
                HasSubstr("waits in the queue of manager: only 0 of 1 node"));
  });
}

TEST_F(TooFullTest, ItGetsANodeThatBecomesFree) {
  SayOther(ManagedPhase::kOver);
  Settle(10);
  ASSERT_TRUE(Desired().kept.contains(kExpress));
  EXPECT_THAT(Desired().kept.at(kExpress).nodes, ElementsAre(NodeId("a")));
}

TEST_F(TooFullTest, AVictimThatComesMakesWayForIt) {
  SayOther(ManagedPhase::kOver);
  Say(Managed(kBatchJob, ManagedPhase::kRunning, {NodeId("a")}));
  Task("a");
  Settle(10);
  EXPECT_EQ(State(kBatchJob), JobState::kParked);
}

TEST_F(TooFullTest, ManyAreLookedAtLessOften) {
  ManagerChanges many;
  for (int id = 100; id < 200; ++id) {
    many.jobs.push_back(Express(ManagedPhase::kWaiting));
    many.jobs.back().id = JobId(id);
  }
  engine_->OnManager(std::move(many));
  SayOther(ManagedPhase::kOver);
  Settle(10);
  EXPECT_THAT(Desired().kept, IsEmpty());
  Settle(15);
  EXPECT_EQ(Desired().kept.size(), 1u);
}

TEST_F(TooFullTest, AfterItsDeadlineNobodyMakesWayForIt) {
  Settle(70);
  SayOther(ManagedPhase::kOver);
  Settle(10);
  EXPECT_EQ(State(kExpress), JobState::kPending);
  EXPECT_THAT(Desired().kept, IsEmpty());
}

TEST_F(TooFullTest, WhereLateJobsWaitTheirTurnNobodyMakesWayForIt) {
  policy_.when_late = WhenLate::kQueue;
  engine_->SetPolicy(policy_);
  SayOther(ManagedPhase::kOver);
  Settle(10);
  EXPECT_THAT(Desired().kept, IsEmpty());
}

TEST_F(TooFullTest, ItRunsWhenItsTurnHasCome) {
  Say(Express(ManagedPhase::kRunning, {NodeId("a")}));
  EXPECT_EQ(State(kExpress), JobState::kRunning);
}

TEST_F(QueueTest, WhoWaitsForATurnDoesNotKeepVictimsOfOthersFromBeingCalledOff) {
  cluster_.slow_dump = {"a"};
  Fill();
  ManagedJob large = Express(ManagedPhase::kWaiting);
  large.id = JobId(51);
  large.spec.nodes = 2;
  Say(large);
  Say(Express(ManagedPhase::kWaiting));
  ASSERT_EQ(State(kBatchJob), JobState::kDumping);
  Say(Express(ManagedPhase::kOver));
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
}

TEST_F(QueueTest, NodesThatOthersReserveCostNoVictim) {
  cluster_.slow_dump = {"a"};
  Fill();
  Say(Express(ManagedPhase::kWaiting));
  ASSERT_EQ(State(kBatchJob), JobState::kDumping);
  manager().nodes = {NodeId("b")};
  Settle(5);
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
}

// ---- The manager was restarted, and does not know of its nodes yet. ----

class RestartedTest : public QueueTest {
 protected:
  void SayNodes(bool known, bool usable) {
    ManagerChanges changes;
    for (const char* node : {"a", "b"}) {
      changes.nodes.push_back(
          {.id = NodeId(node), .capacity = {4, Bytes{8LL << 30}, 0}, .usable = usable, .is_known = known});
    }
    engine_->OnManager(std::move(changes));
    Settle(2);
  }
  void Forget() { SayNodes(false, false); }
  void Learn() { SayNodes(true, true); }
  // Before the queue has the job that it was made to.
  void LoseNodesAfterAPromise() {
    Learn();
    const ManagedJob express = Express(ManagedPhase::kWaiting);
    ASSERT_TRUE(engine_->WouldStart(kBob, express.spec).ok());
    SayNodes(true, false);
    Say(express);
  }
  void Answers(bool answers) {
    ManagerChanges changes;
    changes.answers = answers;
    engine_->OnManager(std::move(changes));
  }
};

TEST_F(RestartedTest, ADeadlineThatComesThenIsServedWhenTheNodesAreKnown) {
  Fill();
  Forget();
  Say(Express(ManagedPhase::kWaiting));
  EXPECT_FALSE(Knows(kExpress));
  Learn();
  EXPECT_EQ(State(kBatchJob), JobState::kParked);
}

TEST_F(RestartedTest, AlsoIfThatTakesLong) {
  Fill();
  Forget();
  Say(Express(ManagedPhase::kWaiting));
  Settle(30);
  EXPECT_EQ(State(kExpress), JobState::kPending);
  Learn();
  Settle(5);
  EXPECT_EQ(State(kBatchJob), JobState::kParked);
}

TEST_F(RestartedTest, WhatWasPlannedIsNotPlannedAgain) {
  Learn();
  MakeWay();
  Forget();
  Settle(3);
  EXPECT_EQ(Job(kExpress).plans.size(), 1u);
}

TEST_F(RestartedTest, WhoAsksThenIsNotRefused) {
  Learn();
  Forget();
  EXPECT_TRUE(absl::IsUnavailable(engine_->WouldStart(kBob, OnDemand(1)).status()));
  Learn();
  EXPECT_TRUE(engine_->WouldStart(kBob, OnDemand(1)).ok());
}

TEST_F(RestartedTest, NothingIsPromisedBeforeTheQueueIsKnown) {
  EXPECT_TRUE(absl::IsUnavailable(engine_->WouldStart(kBob, OnDemand(1)).status()));
}

TEST_F(RestartedTest, NorWhileTheManagerIsAway) {
  Learn();
  Answers(false);
  EXPECT_TRUE(absl::IsUnavailable(engine_->WouldStart(kBob, OnDemand(1)).status()));
}

TEST_F(RestartedTest, WhatWasPromisedIsServedHoweverLate) {
  LoseNodesAfterAPromise();
  EXPECT_THAT(Desired().jobs.at(kExpress).why, HasSubstr("as soon as can be: needs 1 node that are up"));
  Settle(70);
  SayNodes(true, true);
  Settle(5);
  EXPECT_TRUE(Desired().kept.contains(kExpress));
}

TEST_F(RestartedTest, WhileItIsAwayNothingIsPlannedAgain) {
  Learn();
  MakeWay();
  Answers(false);
  cluster_.Disconnect("a");
  Settle(30);
  EXPECT_EQ(Job(kExpress).plans.size(), 1u);
  Answers(true);
  Settle(3);
  EXPECT_EQ(Job(kExpress).plans.size(), 2u);
}

TEST_F(RestartedTest, NorByAControllerThatHasNotHeardOfItYet) {
  Learn();
  MakeWay();
  StartController();
  Settle(30);
  EXPECT_EQ(Job(kExpress).plans.size(), 1u);
}

TEST_F(RestartedTest, WhileItIsAwayNoRequestLosesItsClaim) {
  Learn();
  MakeWay();
  Answers(false);
  Settle(300);
  EXPECT_EQ(State(kExpress), JobState::kPending);
  Answers(true);
  Settle(60);
  EXPECT_EQ(State(kExpress), JobState::kPending);
}

TEST_F(QueueTest, TasksOnOneNodeShareWhatTheJobHas) {
  tasks_.set_nodes(2);
  Say(Managed(kBatchJob, ManagedPhase::kRunning, {NodeId("a")}));
  cluster_.StartManaged("a", tasks_, kBatchJob.value(), 1, "", 65536);
  cluster_.StartManaged("a", tasks_, kBatchJob.value(), 1, "", 65537);
  Settle();
  EXPECT_EQ(Job(kBatchJob).spec.per_node.slots, 2);
  Say(Managed(JobId(43), ManagedPhase::kRunning, {NodeId("b")}));
  Say(Express(ManagedPhase::kWaiting));
  EXPECT_EQ(State(kBatchJob), JobState::kParked);
  EXPECT_THAT(Desired().kept.at(kExpress).nodes, ElementsAre(NodeId("a")));
}

class RescueTest : public QueueTest {
 protected:
  RescueTest() {
    manager().steering = false;
    Say(Managed(kBatchJob, ManagedPhase::kRunning, {NodeId("a")}));
    Task("a");
  }
  void Preempt(Duration grace, bool can_be_pinned = true) {
    ManagedJob job = Managed(kBatchJob, ManagedPhase::kRunning, {NodeId("a")});
    job.leaves_by = clock_.Now() + grace;
    job.can_be_pinned = can_be_pinned;
    Say(job);
  }
};

TEST_F(RescueTest, AJobThatTheManagerPreemptsIsSaved) {
  Preempt(30s);
  EXPECT_EQ(State(kBatchJob), JobState::kParked);
}

TEST_F(RescueTest, OneThatCannotBeSavedInTimeRunsOn) {
  cluster_.memory = 60LL << 30;
  Task("a");
  Preempt(5s);
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
}

// Two jobs of 20 GB and a shared tier of 1 GB/s: within 30 s it takes one of them.
TEST_F(RescueTest, WhoDoesNotFitIntoTheSharedTierInTimeUsesItsOwnDisks) {
  cluster_.memory = 20'000'000'000;
  Task("a");
  cluster_.StartManaged("b", tasks_, 44, 1);
  Say(Managed(JobId(44), ManagedPhase::kRunning, {NodeId("b")}));
  ManagerChanges changes;
  for (const auto& [id, node] : {std::pair(kBatchJob, "a"), std::pair(JobId(44), "b")}) {
    changes.jobs.push_back(Managed(id, ManagedPhase::kRunning, {NodeId(node)}));
    changes.jobs.back().leaves_by = clock_.Now() + 30s;
  }
  engine_->OnManager(std::move(changes));
  Settle();
  std::map<JobId, Tier> tiers;
  engine_->Read([&](const ClusterState& state) {
    for (const auto& [id, checkpoint] : state.checkpoints) tiers[checkpoint.job] = checkpoint.tier;
  });
  // The older one has more to lose.
  EXPECT_EQ(tiers, (std::map<JobId, Tier>{{kBatchJob, Tier::kShared}, {JobId(44), Tier::kLocal}}));
}

TEST_F(RescueTest, WhereNoTierHasRoomNoImageIsBegun) {
  cluster_.local_disk_free = cluster_.shared_disk_free = 0;
  cluster_.Heartbeat("a");
  Preempt(30s);
  EXPECT_EQ(State(kBatchJob), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDump), 0);
}

TEST_F(RescueTest, DeadlinesAreNotPlannedThere) {
  Say(Express(ManagedPhase::kWaiting));
  EXPECT_FALSE(Knows(kExpress));
}

TEST_F(RescueTest, NorPromised) {
  JobSpec spec = OnDemand(1);
  EXPECT_THAT(std::string(engine_->WouldStart(kBob, spec).status().message()),
              HasSubstr("takes no deadlines"));
}

}  // namespace
}  // namespace siding
