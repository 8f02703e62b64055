#include "controller/platform/slurm/watch/translate.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::slurm {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class TranslateTest : public testing::Test {
 protected:
  TranslateTest() {
    job.id = JobNumber(42);
    job.phase = JobPhase::kRunning;
    job.uid = 1000;
    job.nodes = 2;
    job.cpus = 7;
    job.on = {NodeId("a"), NodeId("b")};
  }
  ManagerChanges Changes() const {
    siding::slurm::Changes changes;
    changes.jobs.push_back({{}, job});
    return ManagerChangesOf(changes, inventory, [](uint32_t uid) { return "user-" + std::to_string(uid); });
  }
  ManagedJob Job() const { return Changes().jobs.at(0); }

  QueueJob job;
  Inventory inventory;
};

TEST_F(TranslateTest, AJobIsItsUsers) { EXPECT_EQ(Job().spec.user, "user-1000"); }

TEST_F(TranslateTest, ItHasItsShareOfEachNodeRoundedUp) { EXPECT_EQ(Job().spec.per_node.slots, 4); }

TEST_F(TranslateTest, OneThatWasRequeuedTwiceHasStartedThreeTimes) {
  job.restarts = 2;
  EXPECT_EQ(Job().starts, 3);
}

TEST_F(TranslateTest, OneThatWaitsHasNoNodes) {
  job.phase = JobPhase::kPending;
  EXPECT_THAT(Job().nodes, IsEmpty());
  EXPECT_EQ(Job().spec.nodes, 2);
}

TEST_F(TranslateTest, ASuspendedOneHoldsItsNodes) {
  job.phase = JobPhase::kSuspended;
  EXPECT_EQ(Job().phase, ManagedPhase::kRunning);
}

TEST_F(TranslateTest, AnUnknownStateMayHoldNodes) {
  job.phase = JobPhase::kUnknown;
  EXPECT_EQ(Job().phase, ManagedPhase::kRunning);
}

TEST_F(TranslateTest, OnlyACompletedOneHasSucceeded) {
  job.phase = JobPhase::kEnded;
  job.state = "COMPLETED";
  EXPECT_TRUE(Job().succeeded);
  job.state = "TIMEOUT";
  EXPECT_FALSE(Job().succeeded);
}

TEST_F(TranslateTest, WithoutAMarkItIsABatchJob) {
  job.comment = "start soon";
  EXPECT_EQ(Job().spec.kind, JobKind::kBatch);
}

TEST_F(TranslateTest, AMarkMakesItADeadlineJob) {
  job.comment = "[siding start-by=2026-05-01T12:00:00Z] mine";
  EXPECT_EQ(Job().spec.kind, JobKind::kOnDemand);
  EXPECT_EQ(FormatTime(Job().spec.start_by), "2026-05-01T12:00:00.000Z");
}

TEST_F(TranslateTest, ItHoldsItsNodesForItsTimeLimit) {
  job.comment = "[siding start-by=2026-05-01T12:00:00Z]";
  job.limit = 20min;
  EXPECT_EQ(Job().spec.hold, 20min);
}

TEST_F(TranslateTest, ItsNodesAreFreeAMinuteAfterItsTimeLimit) {
  EXPECT_FALSE(Job().ends_by);
  job.ends = FromMicros(1'700'000'000'000'000);
  EXPECT_EQ(Job().ends_by, *job.ends + 62s);
}

TEST_F(TranslateTest, OneThatSlurmPreemptsLeavesAfterTheGraceOfItsPartition) {
  job.partition = "low";
  job.preempted = FromMicros(1'700'000'000'000'000);
  inventory.partitions = {{.name = "low", .grace = 30s}};
  EXPECT_EQ(Job().leaves_by, *job.preempted + 30s);
}

TEST_F(TranslateTest, OneElementOfAnArrayCannotBePinned) {
  EXPECT_TRUE(Job().can_be_pinned);
  job.array = JobNumber(40);
  EXPECT_FALSE(Job().can_be_pinned);
}

TEST_F(TranslateTest, ElementsWithoutNumbersAreNoJobs) {
  job.array_tasks = "1-3";
  EXPECT_THAT(Changes().jobs, IsEmpty());
}

TEST_F(TranslateTest, WhatSlurmForgotIsGone) {
  siding::slurm::Changes changes;
  changes.jobs.push_back({job, {}});
  EXPECT_THAT(ManagerChangesOf(changes, {}, [](uint32_t) { return ""; }).gone_jobs, ElementsAre(JobId(42)));
}

TEST_F(TranslateTest, OneThatIsHeldOrWaitsForAnotherMayNotStart) {
  EXPECT_FALSE(Job().may_start);
  job.eligible = FromMicros(1);
  EXPECT_TRUE(Job().may_start);
  job.held = true;
  EXPECT_FALSE(Job().may_start);
}

TEST_F(TranslateTest, OneInAReservationOfItsUsersIsNotPlannedFor) {
  job.eligible = FromMicros(1);
  job.reservation = "siding-42";
  EXPECT_TRUE(Job().may_start);
  job.reservation = "course";
  EXPECT_FALSE(Job().may_start);
}

TEST_F(TranslateTest, AnArrayHasNoDeadline) {
  job.comment = "[siding start-by=2026-05-01T12:00:00Z]";
  job.array = JobNumber(40);
  EXPECT_EQ(Job().spec.kind, JobKind::kBatch);
}

TEST_F(TranslateTest, WhoSuspendedItMatters) {
  job.phase = JobPhase::kSuspended;
  EXPECT_TRUE(Job().suspended);
  job.admin_comment = "[siding suspended: makes way for job 7]";
  EXPECT_FALSE(Job().suspended);
}

TEST(ReservedByOthers, AreNodesThatAreNotToBePlannedWith) {
  const Time now = FromMicros(1'700'000'000'000'000);
  const std::vector<Reservation> reservations = {{"siding-7", {NodeId("a")}, {}, now, now + 1h},
                                                 {"course", {NodeId("b")}, {}, now - 1h, now + 1h},
                                                 {"tomorrow", {NodeId("c")}, {}, now + 24h, now + 25h},
                                                 {"over", {NodeId("d")}, {}, now - 2h, now - 1h}};
  EXPECT_THAT(ReservedByOthers(reservations, now), ElementsAre(NodeId("b")));
}

TEST(NodesOf, AreTheNamedOnesIfThereAreAny) {
  JobSpec job;
  job.labels[kNodesLabel] = "n[1-2]";
  EXPECT_EQ(NodesOf({}, job), (std::set<NodeId>{NodeId("n1"), NodeId("n2")}));
}

TEST(NodesOf, AreThoseOfThePartitionsThatAJobNames) {
  const std::vector<Partition> partitions = {{.name = "a", .nodes = {NodeId("1")}},
                                             {.name = "b", .is_default = true, .nodes = {NodeId("2")}},
                                             {.name = "c", .nodes = {NodeId("3")}}};
  const auto of = [&](const char* names) {
    JobSpec job;
    if (*names != '\0') job.labels["partition"] = names;
    return NodesOf({partitions, {}}, job);
  };
  EXPECT_EQ(of("a,c"), (std::set<NodeId>{NodeId("1"), NodeId("3")}));
  EXPECT_EQ(of(""), (std::set<NodeId>{NodeId("2")}));
  EXPECT_EQ(of("d"), std::nullopt);
}

class NodesAJobMayHave : public testing::Test {
 protected:
  NodesAJobMayHave() {
    inventory.partitions = {{.name = "p", .is_default = true, .nodes = {kA, kB, kC}}};
    inventory.nodes = {{kA, {4, {"old"}}}, {kB, {8, {"new", "fast"}}}, {kC, {8, {"new"}}}};
    job.kind = JobKind::kOnDemand;
  }
  const NodeId kA{"a"}, kB{"b"}, kC{"c"};
  Inventory inventory;
  JobSpec job;
};

TEST_F(NodesAJobMayHave, ExcludedOnesAreNone) {
  job.labels[kExcludeLabel] = "a,b";
  EXPECT_EQ(NodesOf(inventory, job), std::set<NodeId>{kC});
}

TEST_F(NodesAJobMayHave, TheyHaveTheFeaturesThatItWants) {
  job.labels[kConstraintLabel] = "new&fast";
  EXPECT_EQ(NodesOf(inventory, job), std::set<NodeId>{kB});
  job.labels[kConstraintLabel] = "[not|planned]";
  EXPECT_EQ(NodesOf(inventory, job), std::set<NodeId>());
}

TEST_F(NodesAJobMayHave, AnExclusiveOneTakesAllOfNodesThatAreAlike) {
  job.labels[kExclusiveLabel] = "yes";
  TakeWholeNodes(job, inventory);
  EXPECT_EQ(job.per_node.slots, 8);
  EXPECT_EQ(NodesOf(inventory, job), (std::set<NodeId>{kB, kC}));
}

TEST_F(NodesAJobMayHave, ABatchJobTakesWhatSlurmSays) {
  job.kind = JobKind::kBatch;
  job.labels[kExclusiveLabel] = "yes";
  TakeWholeNodes(job, inventory);
  EXPECT_EQ(job.per_node.slots, 1);
}

TEST_F(TranslateTest, ADeadlineJobIsAskedForWithWhatItsUserWants) {
  job.comment = "[siding start-by=2026-05-01T12:00:00Z]";
  job.not_on = {NodeId("a")};
  job.constraint = "new";
  job.whole_nodes = true;
  EXPECT_THAT(Job().spec.labels, testing::UnorderedElementsAre(testing::Pair(kExcludeLabel, "a"),
                                                               testing::Pair(kConstraintLabel, "new"),
                                                               testing::Pair(kExclusiveLabel, "yes")));
}

TEST_F(TranslateTest, WhatChangesAboutNodesIsKept) {
  const QueueNode node{.id = NodeId("a"), .cpus = 4, .features = {"new"}};
  const Inventory with = WithNodes({}, {{{}, node}});
  EXPECT_EQ(with.nodes, (std::map<NodeId, Inventory::Node>{{NodeId("a"), {4, {"new"}}}}));
  EXPECT_EQ(WithNodes(with, {{node, {}}}), Inventory());
}

TEST_F(TranslateTest, ADrainedNodeIsNotUsable) {
  siding::slurm::Changes changes;
  changes.nodes.push_back(
      {{}, QueueNode{.id = NodeId("a"), .state = "idle", .up = true, .drained = true, .cpus = 4}});
  const auto nodes = ManagerChangesOf(changes, {}, [](uint32_t) { return ""; }).nodes;
  EXPECT_FALSE(nodes.at(0).usable);
  EXPECT_TRUE(nodes.at(0).is_known);
  EXPECT_EQ(nodes.at(0).capacity.slots, 4);
}

TEST_F(TranslateTest, ANodeThatHasNotRegisteredSinceSlurmWasStartedIsNotKnown) {
  siding::slurm::Changes changes;
  changes.nodes.push_back({{}, QueueNode{.id = NodeId("a"), .state = "unknown", .cpus = 4}});
  const auto nodes = ManagerChangesOf(changes, {}, [](uint32_t) { return ""; }).nodes;
  EXPECT_FALSE(nodes.at(0).usable);
  EXPECT_FALSE(nodes.at(0).is_known);
}

}  // namespace
}  // namespace siding::slurm
