// Jobs whose tasks a cluster manager starts: the engine follows it.
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

const JobId kJob(42);

class ManagedTaskTest : public EngineTest {
 protected:
  ManagedTaskTest() {
    AddNodes({"a", "b"});
    spec_.set_name("train");
    spec_.set_cluster_manager("manager");
    spec_.set_uid(kAda.uid);
    spec_.mutable_per_node()->set_slots(4);
    spec_.set_kill_grace_us(0);
    for (v1::Method method : {v1::SUSPEND, v1::CHECKPOINT, v1::KILL}) spec_.add_methods(method);
  }
  void Start(const char* node, int incarnation = 1, const std::string& checkpoint = "") {
    cluster_.StartManaged(node, spec_, kJob.value(), incarnation, checkpoint);
    Settle();
  }
  void Vacate() {
    EXPECT_TRUE(engine_->Vacate(kRoot, kJob, Tier::kShared).ok());
    Settle();
  }
  std::string LastEvent() { return Describe(engine_->EventsAfter(0, 1000, 0s).back()); }
  std::string NodeOf(JobId job) { return Job(job).nodes.empty() ? "" : Job(job).nodes.front().value(); }

  v1::JobSpec spec_;
};

TEST_F(ManagedTaskTest, AJobThatWasStartedIsKnownAndNotStartedAgain) {
  Start("a");
  EXPECT_EQ(State(kJob), JobState::kRunning);
  EXPECT_EQ(NodeOf(kJob), "a");
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kLaunch), 0);
}

TEST_F(ManagedTaskTest, ItIsItsOwners) {
  Start("a");
  EXPECT_TRUE(engine_->Suspend(kAda, kJob).ok());
  EXPECT_TRUE(absl::IsNotFound(engine_->Resume(kBob, kJob)));
}

TEST_F(ManagedTaskTest, ItLeavesAndIsNotPlacedByUs) {
  Start("a");
  Vacate();
  EXPECT_EQ(State(kJob), JobState::kParked);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kRestore), 0);
}

TEST_F(ManagedTaskTest, ItsCheckpointsAreCalledAsItsAgentsExpect) {
  Start("a");
  Vacate();
  EXPECT_EQ(Job(kJob).checkpoints.back(), CheckpointId("manager-42.1"));
}

TEST_F(ManagedTaskTest, ARankThatWaitsForOneThatHasEndedRunsOn) {
  spec_.set_nodes(2);
  cluster_.StartManaged("a", spec_, kJob.value(), 1, "", 0);
  cluster_.StartManaged("b", spec_, kJob.value(), 1, "", 1);
  Settle();
  cluster_.slow_commit = {"b"};
  Vacate();
  ASSERT_EQ(State(kJob), JobState::kCommitting);
  cluster_.slow_dump = {"b"};
  cluster_.Restart("b");
  cluster_.LoseQueue();
  cluster_.Vanish(kJob, 1);
  Settle();
  EXPECT_EQ(cluster_.In(kJob, v1::PREPARED), 0);
  EXPECT_EQ(cluster_.Running(kJob), 1);
}

TEST_F(ManagedTaskTest, ItComesBackWhereTheClusterManagerPutsIt) {
  Start("a");
  Vacate();
  Start("b", 2, "manager-42.1");
  EXPECT_EQ(State(kJob), JobState::kRunning);
  EXPECT_EQ(NodeOf(kJob), "b");
  EXPECT_EQ(Job(kJob).incarnation, 2);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kRestore), 0);
}

TEST_F(ManagedTaskTest, WhereItGoesOnFromIsSaid) {
  Start("a");
  Vacate();
  Start("b", 2, "manager-42.1");
  EXPECT_EQ(LastEvent(), "running again from checkpoint manager-42.1");
}

TEST_F(ManagedTaskTest, ThatItStartedOverIsNotCalledContinuingFromACheckpoint) {
  Start("a");
  Vacate();
  Start("b", 2);
  EXPECT_EQ(LastEvent(), "running again");
}

TEST_F(ManagedTaskTest, AStartThatNobodyOrderedIsFollowed) {
  Start("a");
  Start("b", 4);
  EXPECT_EQ(State(kJob), JobState::kRunning);
  EXPECT_EQ(NodeOf(kJob), "b");
  EXPECT_EQ(Job(kJob).incarnation, 4);
}

TEST_F(ManagedTaskTest, OneThatEndedAndIsStartedAgainIsFollowed) {
  Start("a");
  Vacate();
  Start("b", 2, "manager-42.1");
  cluster_.Exit(kJob, 0, 143);
  EXPECT_EQ(State(kJob), JobState::kFailed);
  Start("a", 3);
  EXPECT_EQ(State(kJob), JobState::kRunning);
  EXPECT_EQ(NodeOf(kJob), "a");
  Vacate();
  EXPECT_EQ(Job(kJob).checkpoints.back(), CheckpointId("manager-42.2"));
}

TEST_F(ManagedTaskTest, OneThatHasEndedStaysEnded) {
  Start("a");
  cluster_.Exit(kJob, 0, 0);
  Start("a");
  EXPECT_EQ(State(kJob), JobState::kDone);
}

TEST_F(ManagedTaskTest, AnOldReportChangesNothing) {
  Start("a");
  Start("b", 3);
  Start("a", 2);
  EXPECT_EQ(NodeOf(kJob), "b");
}

TEST_F(ManagedTaskTest, ItMakesWayForADeadline) {
  Start("a");
  const JobId other = Submit(Batch(1, {}));
  Settle();
  const JobId express = Submit(OnDemand(1), kBob);
  Settle();
  EXPECT_EQ(State(other), JobState::kRunning);
  EXPECT_EQ(State(express), JobState::kRunning);
  EXPECT_EQ(NodeOf(express), "a");
}

// What an agent finds on its own disk says nothing of the other ranks.
class ManagedGangTest : public ManagedTaskTest {
 protected:
  ManagedGangTest() {
    spec_.set_nodes(2);
    spec_.clear_methods();
    spec_.add_methods(v1::CHECKPOINT);
    cluster_.shared_bytes_per_second = 1e8;
    for (const char* node : {"a", "b"}) cluster_.Heartbeat(node);
    cluster_.StartManaged("a", spec_, kJob.value(), 1, "", 0);
    cluster_.StartManaged("b", spec_, kJob.value(), 1, "", 1);
    Settle();
    EXPECT_EQ(State(kJob), JobState::kRunning);
  }
};

TEST_F(ManagedGangTest, ItIsNotSavedToItsNodesOwnDisks) {
  EXPECT_THAT(std::string(engine_->Vacate(kRoot, kJob, Tier::kLocal).message()), HasSubstr("several tasks"));
  EXPECT_THAT(std::string(engine_->Checkpoint(kRoot, kJob, Tier::kLocal).status().message()),
              HasSubstr("goes on from shared storage only"));
}

TEST_F(ManagedGangTest, NorToMakeWayThoughTheseAreFaster) {
  Submit(OnDemand(1, 200s), kBob);
  Settle();
  std::vector<Tier> tiers;
  engine_->Read([&](const ClusterState& state) {
    for (const auto& [id, checkpoint] : state.checkpoints) tiers.push_back(checkpoint.tier);
  });
  EXPECT_EQ(tiers, std::vector{Tier::kShared});
}

TEST_F(ManagedTaskTest, ItIsNeverKilledToMakeWay) {
  Start("a");
  EXPECT_FALSE(Job(kJob).spec.methods.Has(Method::kKill));
}

TEST_F(ManagedTaskTest, WithAnImageInAdvanceItStillLeavesByACheckpoint) {
  cluster_.memory = 20LL << 30;
  policy_.margin = 0s;
  StartController();
  cluster_.Connect("a");
  cluster_.Connect("b");
  Start("a");
  Submit(Batch(1, {}));
  Settle();
  JobSpec spec = OnDemand(1, 65s);
  spec.not_before = clock_.Now() + 60s;
  const JobId express = Submit(spec, kBob);
  Settle(70);
  EXPECT_EQ(State(express), JobState::kRunning);
  EXPECT_EQ(State(kJob), JobState::kParked);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kKill), 0);
}

TEST_F(ManagedTaskTest, ItEndsAsItsTaskEnds) {
  Start("a");
  cluster_.Exit(kJob, 0, 0);
  EXPECT_EQ(State(kJob), JobState::kDone);
}

TEST_F(ManagedTaskTest, ANewControllerKnowsItAgain) {
  Start("a");
  Vacate();
  StartController();
  cluster_.Connect("a");
  cluster_.Connect("b");
  Start("b", 2, "manager-42.1");
  EXPECT_EQ(State(kJob), JobState::kRunning);
  EXPECT_EQ(Job(kJob).preemptions, 0);
}

TEST_F(ManagedTaskTest, OneOfOurOwnOfTheSameNumberIsNotTouched) {
  const JobId own = Submit(Batch(1));
  Settle();
  cluster_.StartManaged("b", spec_, own.value(), 7);
  Settle();
  EXPECT_EQ(Job(own).incarnation, 1);
  EXPECT_EQ(State(own), JobState::kRunning);
}

}  // namespace
}  // namespace siding
