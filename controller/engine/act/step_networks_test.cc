// Ranks of a cluster manager's steps are let into one network when all of a step's are there.
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

const JobId kJob(42);

class StepNetworksTest : public EngineTest {
 protected:
  StepNetworksTest() {
    AddNodes({"a", "b"});
    spec_.set_name("solve");
    spec_.set_cluster_manager("manager");
    spec_.set_uid(kAda.uid);
    spec_.mutable_per_node()->set_slots(4);
    for (v1::Method method : {v1::SUSPEND, v1::CHECKPOINT}) spec_.add_methods(method);
    spec_.set_nodes(2);
    spec_.set_keep_connections(true);
  }
  void Start(const char* node, int rank, int incarnation = 1, const std::string& checkpoint = "") {
    cluster_.StartManaged(node, spec_, kJob.value(), incarnation, checkpoint, kRanksPerStep + rank);
    Settle();
  }
  void StartStep(int incarnation = 1, const std::string& first = "", const std::string& second = "") {
    cluster_.StartManaged("a", spec_, kJob.value(), incarnation, first, kRanksPerStep);
    cluster_.StartManaged("b", spec_, kJob.value(), incarnation, second, kRanksPerStep + 1);
    Settle();
  }
  // It has no network.
  void StartScript() {
    spec_.set_keep_connections(false);
    spec_.set_nodes(1);
    cluster_.StartManaged("a", spec_, kJob.value(), 1);
    Settle();
    spec_.set_keep_connections(true);
    spec_.set_nodes(2);
  }
  void Vacate() {
    EXPECT_TRUE(engine_->Vacate(kRoot, kJob, Tier::kShared).ok());
    Settle();
  }
  v1::JoinNetwork Joined(int rank, int incarnation = 1) const {
    const auto joined = cluster_.joined.find(TaskId{kJob, incarnation, kRanksPerStep + rank});
    return joined == cluster_.joined.end() ? v1::JoinNetwork() : joined->second;
  }

  v1::JobSpec spec_;
};

TEST_F(StepNetworksTest, EachRankIsToldWhereAllAre) {
  StartStep();
  EXPECT_EQ(State(kJob), JobState::kRunning);
  for (const int rank : {0, 1}) {
    ASSERT_EQ(Joined(rank).ranks_size(), 2);
    EXPECT_EQ(Joined(rank).ranks(1).rank(), 1);
  }
}

TEST_F(StepNetworksTest, ItStandsStillAsAWholeForACheckpoint) {
  StartStep();
  Vacate();
  EXPECT_EQ(State(kJob), JobState::kParked);
  EXPECT_GT(cluster_.Count(v1::ToAgent::kPassBarrier), 0);
}

TEST_F(StepNetworksTest, ItsStepIsWhatSaysSo) {
  StartScript();
  StartStep();
  EXPECT_EQ(Joined(1).ranks_size(), 2);
}

TEST_F(StepNetworksTest, OneThatDoesNotStandForItsJobIsJoinedToo) {
  StartStep();
  cluster_.StartManaged("a", spec_, kJob.value(), 1, "", 2 * kRanksPerStep);
  cluster_.StartManaged("b", spec_, kJob.value(), 1, "", 2 * kRanksPerStep + 1);
  Settle();
  EXPECT_EQ(Joined(kRanksPerStep + 1).ranks_size(), 2);
}

TEST_F(StepNetworksTest, OneIsNotJoinedToAnother) {
  cluster_.StartManaged("a", spec_, kJob.value(), 1, "", kRanksPerStep);
  cluster_.StartManaged("b", spec_, kJob.value(), 1, "", 2 * kRanksPerStep + 1);
  Settle();
  EXPECT_EQ(Joined(0).ranks_size(), 0);
}

TEST_F(StepNetworksTest, ARankThatHasEndedIsNotWaitedFor) {
  Start("a", 0);
  cluster_.managed_phase = v1::EXITED;
  Start("b", 1);
  EXPECT_EQ(Joined(0).ranks_size(), 1);
}

TEST_F(StepNetworksTest, OneThatNeverComesIsWaitedForTenMinutes) {
  Start("a", 0);
  clock_.Advance(9min);
  Settle();
  EXPECT_EQ(Joined(0).refused(), "");
  clock_.Advance(2min);
  Settle();
  EXPECT_EQ(Joined(0).refused(), "only 1 of 2 tasks have come");
}

TEST_F(StepNetworksTest, ItIsJoinedThoughItIsToBeFrozen) {
  StartScript();
  cluster_.managed_phase = v1::RESTORING;
  cluster_.slow_join = {"a", "b"};
  StartStep();
  ASSERT_TRUE(engine_->Suspend(kRoot, kJob).ok());
  Settle();
  cluster_.slow_join.clear();
  Settle(7);
  EXPECT_EQ(Joined(1).ranks_size(), 2);
}

TEST_F(StepNetworksTest, ANewControllerGoesOn) {
  cluster_.slow_join = {"a", "b"};
  StartStep();
  cluster_.slow_join.clear();
  StartController();
  cluster_.Connect("a");
  cluster_.Connect("b");
  Settle();
  EXPECT_EQ(Joined(0).ranks_size(), 2);
}

TEST_F(StepNetworksTest, ANodeThatIsNotTheJobsIsNotLetIn) {
  AddNodes({"c"});
  ManagerChanges changes;
  changes.jobs.resize(1);
  ManagedJob& running = changes.jobs.front();
  running.id = kJob;
  running.phase = ManagedPhase::kRunning;
  running.spec = Batch(2);
  running.spec.cluster_manager = "manager";
  running.nodes = {NodeId("a"), NodeId("b")};
  engine_->OnManager(std::move(changes));
  cluster_.StartManaged("a", spec_, kJob.value(), 1, "", kRanksPerStep);
  cluster_.StartManaged("c", spec_, kJob.value(), 1, "", kRanksPerStep + 1);
  Settle();
  EXPECT_EQ(Joined(0).ranks_size(), 0);
}

TEST_F(StepNetworksTest, RanksFromOneImageMeet) {
  StartStep();
  Vacate();
  StartStep(2, "manager-42.1", "manager-42.1");
  EXPECT_EQ(Joined(0, 2).ranks_size(), 2);
  EXPECT_EQ(State(kJob), JobState::kRunning);
}

TEST_F(StepNetworksTest, RanksFromDifferentImagesDoNot) {
  StartStep();
  Vacate();
  StartStep(2, "manager-42.1", "");
  EXPECT_EQ(Joined(0, 2).ranks_size(), 0);
  EXPECT_EQ(Joined(1, 2).refused(), "rank 0 goes on from checkpoint manager-42.1, rank 1 from its beginning");
  EXPECT_EQ(State(kJob), JobState::kRestoring);
}

TEST_F(StepNetworksTest, WhoComesTooLateIsNotJoinedEither) {
  cluster_.slow_join = {"a"};
  Start("a", 0);
  clock_.Advance(11min);
  Settle();
  Start("b", 1);
  EXPECT_EQ(Joined(1).refused(), "only 1 of 2 tasks have come");
}

TEST_F(StepNetworksTest, NobodyRunsWithoutARankThatCannotBeStarted) {
  cluster_.managed_phase = v1::RESTORING;
  Start("a", 0, 2, "manager-42.1");
  cluster_.managed_phase = v1::RESTORE_FAILED;
  Start("b", 1, 2, "manager-42.1");
  EXPECT_EQ(Joined(0, 2).ranks_size(), 0);
  EXPECT_THAT(Joined(0, 2).refused(), HasSubstr("rank 1 on b: "));
}

TEST_F(StepNetworksTest, OneThatHadEndedBeforeIsInItsNodesNextReport) {
  cluster_.managed_phase = v1::EXITED;
  Start("b", 1);
  cluster_.managed_phase = v1::RUNNING;
  Start("a", 0);
  cluster_.managed_phase = v1::EXITED;
  Start("b", 1);
  EXPECT_EQ(Joined(0).ranks_size(), 1);
}

TEST_F(StepNetworksTest, RestoredRanksRunWhenAllAreJoined) {
  cluster_.managed_phase = v1::RESTORING;
  cluster_.slow_join = {"b"};
  StartStep(2, "manager-42.1", "manager-42.1");
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kAllJoined), 0);
  cluster_.slow_join.clear();
  Settle(7);
  EXPECT_GE(cluster_.Count(v1::ToAgent::kAllJoined), 2);
}

}  // namespace
}  // namespace siding
