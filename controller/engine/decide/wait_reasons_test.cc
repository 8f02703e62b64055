// What users read beside the state of a job that does not start or does not end, and what is refused because
// it could never start.
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

class WaitsTest : public EngineTest {
 protected:
  std::string Why(JobId id) {
    std::string why;
    engine_->Read([&](const ClusterState& state) { why = engine_->WhyWaits(state.jobs.at(id)); });
    return why;
  }
  std::string ErrorOf(const JobSpec& spec) {
    return std::string(engine_->Submit(kAda, spec).status().message());
  }
  // Nodes that have been there for longer than agents take to dial.
  void AddOldNodes(std::initializer_list<const char*> names) {
    AddNodes(names);
    Settle(11);
  }
};

// ---- Never. ----

TEST_F(WaitsTest, WhatNoNodeHasIsRefusedAtOnce) {
  AddOldNodes({"a", "b"});
  JobSpec memory = Batch(), slots = Batch(), gpus = Batch();
  memory.per_node.memory = Bytes{100LL << 30};
  slots.per_node.slots = 5;
  gpus.per_node.gpus = 1;
  EXPECT_THAT(ErrorOf(memory),
              HasSubstr("memory: expected at most 8.0 GiB, what a node of this cluster has"));
  EXPECT_THAT(ErrorOf(slots), HasSubstr("slots: expected at most 4, what a node of this cluster has, got 5"));
  EXPECT_THAT(ErrorOf(gpus), HasSubstr("gpus: expected at most 0"));
}

TEST_F(WaitsTest, MoreNodesThanThereAreAreRefusedAtOnce) {
  AddOldNodes({"a", "b"});
  EXPECT_THAT(ErrorOf(Batch(9)),
              HasSubstr("nodes: expected at most 2, so many nodes of this cluster have 4 slots"));
  EXPECT_EQ(ErrorOf(Batch(2)), "");
}

TEST_F(WaitsTest, NodesThatAreCordonedOrAwayCountAsThere) {
  AddOldNodes({"a", "b", "c"});
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("b"), true).ok());
  cluster_.Disconnect("c");
  const JobId job = Submit(Batch(3));
  Settle();
  EXPECT_EQ(Why(job), "waits for 3 nodes with 4 slots; 1 has that, nodes b,c are away, cordoned or faulty");
}

TEST_F(WaitsTest, NodesThatAreLostDoNot) {
  AddOldNodes({"a", "b"});
  cluster_.Disconnect("b");
  ASSERT_TRUE(engine_->Lose(kRoot, NodeId("b")).ok());
  EXPECT_THAT(ErrorOf(Batch(2)), HasSubstr("nodes: expected at most 1"));
}

TEST_F(WaitsTest, NothingIsRefusedWhileAgentsMayStillDial) {
  EXPECT_EQ(ErrorOf(Batch(3)), "");
  AddNodes({"a"});
  EXPECT_EQ(ErrorOf(Batch(2)), "");
  Settle(11);
  EXPECT_NE(ErrorOf(Batch(2)), "");
}

TEST_F(WaitsTest, NorIfTheJournalNamesANodeThatHasNotDialled) {
  AddOldNodes({"a", "b"});
  Submit(Batch(2));
  Settle();
  cluster_.Disconnect("b");
  StartController();
  cluster_.Connect("a");
  Settle(15);
  EXPECT_EQ(ErrorOf(Batch(2)), "");
}

// ---- Not yet. ----

TEST_F(WaitsTest, TheFirstInTheQueueWaitsForResources) {
  AddNodes({"a", "b"});
  Submit(Batch());
  const JobId job = Submit(Batch(2));
  Settle();
  EXPECT_EQ(Why(job), "waits for 2 nodes with 4 slots; 1 is free: node b");
}

TEST_F(WaitsTest, WhatIsFreeOnNodesThatHaveTooLittleIsSaidNodeByNode) {
  AddNodes({"a", "b"});
  JobSpec most = Batch();
  most.per_node.slots = 3;
  Submit(most);
  Submit(most);
  JobSpec two = Batch();
  two.per_node.slots = 2;
  const JobId job = Submit(two);
  Settle();
  EXPECT_EQ(Why(job), "waits for 1 node with 2 slots; none is free: a has 1 slot, b has 1 slot");
}

TEST_F(WaitsTest, NodesThatAreFreeAndKeptFreeByThePolicyAreNotPromised) {
  AddNodes({"a", "b", "c"});
  Policy policy;
  policy.headroom_nodes = 1;
  engine_->SetPolicy(policy);
  Submit(Batch());
  const JobId job = Submit(Batch(2));
  Settle();
  EXPECT_EQ(Why(job),
            "waits for 2 nodes with 4 slots; 2 are free: nodes a,c; 1 of them is kept free of batch jobs by "
            "the site's "
            "policy (headroom_nodes)");
}

TEST_F(WaitsTest, OthersWaitBehindIt) {
  AddNodes({"a"});
  Submit(Batch());
  JobSpec urgent = Batch();
  urgent.priority = 1;
  const JobId second = Submit(Batch()), third = Submit(Batch());
  Settle();
  EXPECT_EQ(Why(third), absl::StrCat("waits behind job ", second.value(), ", which was there before"));
  const JobId first = Submit(urgent);
  Settle();
  EXPECT_EQ(Why(second), absl::StrCat("waits behind job ", first.value(), ", which has a higher priority"));
}

TEST_F(WaitsTest, AJobMayWaitForTheNodesWhereItsImageLies) {
  AddNodes({"a", "b"});
  const JobId job = Submit(Batch());
  Settle();
  const NodeId node = Job(job).nodes[0];
  ASSERT_TRUE(engine_->Cordon(kRoot, node, true).ok());
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kLocal).ok());
  Settle();
  EXPECT_EQ(Why(job), absl::StrCat("waits for node ", node.value(), ": its image is there alone"));
}

TEST_F(WaitsTest, NodesThatThePolicyKeepsFreeAreNamed) {
  AddNodes({"a", "b"});
  Policy policy;
  policy.headroom_nodes = 1;
  engine_->SetPolicy(policy);
  const JobId job = Submit(Batch(2));
  Settle();
  EXPECT_THAT(Why(job), HasSubstr("of 2 the site's policy keeps 1 free of batch jobs (headroom_nodes)"));
}

TEST_F(WaitsTest, ARequestWaitsForTheNodesOfItsPlan) {
  AddNodes({"a"});
  JobSpec spec = Batch(1, {Method::kApp});
  spec.app = AppMethod{.grace = 10s};
  const JobId victim = Submit(spec);
  Settle();
  const JobId express = Submit(OnDemand(1), kBob);
  EXPECT_EQ(Why(express), "waits for node a");
  EXPECT_EQ(Why(victim), "waits for the program to save itself, for 10.0s at most");
}

TEST_F(WaitsTest, ABrokenPromiseIsSaid) {
  AddNodes({"a"});
  JobSpec spec = Batch(1, {Method::kKill});
  spec.kill_grace = 1s;
  Submit(spec);
  Settle();
  cluster_.Disconnect("a");
  cluster_.Connect("a");
  const JobId express = Submit(OnDemand(1, 40s), kBob);
  cluster_.LoseQueue();
  cluster_.Disconnect("a");
  Settle(20);
  EXPECT_THAT(Why(express), HasSubstr("cannot meet its deadline of "));
  Settle(30);
  EXPECT_THAT(Why(express), HasSubstr("has missed its deadline of "));
}

TEST_F(WaitsTest, WhoIsGoneInTimeIsLetPastTheFirst) {
  AddNodes({"a", "b"});
  JobSpec spec = Batch();
  spec.walltime = 10min;
  const JobId running = Submit(spec);
  Settle();
  const JobId gang = Submit(Batch(2)), silent = Submit(Batch());
  spec.walltime = 11min;
  const JobId longer = Submit(spec);
  spec.walltime = 9min;
  const JobId shorter = Submit(spec);
  Settle();
  EXPECT_EQ(State(running), JobState::kRunning);
  EXPECT_EQ(State(shorter), JobState::kRunning);
  EXPECT_EQ(Why(gang), "waits for 2 nodes with 4 slots; none is free");
  for (JobId job : {silent, longer}) EXPECT_THAT(Why(job), HasSubstr("waits behind job 2"));
  clock_.Advance(10min);
  Settle(4);
  EXPECT_EQ(State(gang), JobState::kRunning);
}

// ---- No end. ----

TEST_F(WaitsTest, ANodeThatIsAwayIsNamedWithSinceWhen) {
  AddNodes({"a", "b"});
  const JobId job = Submit(Batch(2));
  Settle();
  EXPECT_EQ(Why(job), "");
  cluster_.Disconnect("b");
  const std::string since = FormatTime(clock_.Now());
  Settle();
  EXPECT_EQ(Why(job), "waits for node b, whose agent is gone since " + since);
  ASSERT_TRUE(engine_->Kill(kAda, job).ok());
  Settle();
  EXPECT_EQ(Why(job), "waits for node b, whose agent is gone since " + since);
}

TEST_F(WaitsTest, AKillSaysHowLongItMayTake) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  ASSERT_TRUE(engine_->Kill(kAda, job).ok());
  EXPECT_EQ(Why(job), "waits for its processes to end, until SIGKILL after 10.0s");
}

// ---- Where to. ----

TEST_F(WaitsTest, AJobThatVacatesItsNodeGoesElsewhere) {
  AddNodes({"a", "b"});
  const JobId job = Submit(Batch());
  Settle();
  const std::vector<NodeId> before = Job(job).nodes;
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_NE(Job(job).nodes, before);
}

TEST_F(WaitsTest, UnlessNothingElseIsFree) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(WaitsTest, TwoTasksAreNotMovedToOneNode) {
  AddNodes({"a", "b", "c"});
  const JobId gang = Submit(Batch(2));
  Settle();
  const absl::Status status = engine_->Migrate(kAda, gang, {NodeId("c"), NodeId("c")});
  EXPECT_THAT(status.message(), HasSubstr("nodes: expected different ones"));
  EXPECT_TRUE(engine_->Migrate(kAda, gang, {NodeId("c"), NodeId("b")}).ok());
}

TEST_F(WaitsTest, NobodyIsMovedToWhereHeIs) {
  AddNodes({"a", "b"});
  const JobId job = Submit(Batch());
  Settle();
  const absl::Status status = engine_->Migrate(kAda, job, Job(job).nodes);
  EXPECT_THAT(status.message(), HasSubstr("nodes: expected others than those where job 1 is already"));
}

}  // namespace
}  // namespace siding
