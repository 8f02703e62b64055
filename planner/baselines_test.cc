#include "planner/baselines.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/planner.h"

namespace siding {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

const Time kNow{seconds(1'000'000)};

// Job j has `nodes` nodes to itself, began j * 100 s ago and holds 1 GiB on each of them.
struct Cluster {
  Snapshot snapshot;
  Cluster() {
    snapshot.now = kNow;
    snapshot.shared.bytes_per_second = 1e9;
  }
  void Add(int job, int nodes, int priority = 0) {
    JobView view;
    view.id = JobId(job);
    view.priority = priority;
    view.methods = {Method::kSuspend, Method::kCheckpoint, Method::kKill};
    view.running_since = view.durable_at = kNow - seconds(100 * job);
    for (int i = 0; i < nodes; ++i) {
      NodeView node;
      node.id = NodeId("n" + std::to_string(snapshot.nodes.size()));
      node.capacity = {1, Bytes{4LL << 30}, 0};
      node.free = {0, Bytes{4LL << 30}, 0};
      node.ram_available = Bytes{4LL << 30};
      node.shared = {{1e9, seconds(0)}, {1e9, seconds(0)}};
      view.nodes.push_back(node.id);
      view.memory.push_back(Bytes{1LL << 30});
      snapshot.nodes.push_back(node);
    }
    snapshot.jobs.push_back(view);
  }
  Plan For(Strategy strategy, int nodes, Bytes memory = Bytes{0}) const {
    Policy policy;
    policy.strategy = strategy;
    return MakePlan(snapshot, {JobId(99), nodes, {1, memory, 0}, kNow + seconds(60), {}, {}}, policy);
  }
};

std::vector<int64_t> Victims(const Plan& plan) {
  std::vector<int64_t> ids;
  for (const PlanStep& step : plan.steps) ids.push_back(step.job.value());
  return ids;
}

TEST(Baselines, SlurmTakesTheLowestPriorityThenTheSmallest) {
  Cluster cluster;
  cluster.Add(1, 3);
  cluster.Add(2, 2);
  cluster.Add(3, 1, 5);
  EXPECT_THAT(Victims(cluster.For(Strategy::kSlurmPreempt, 3)), ElementsAre(2, 1));
}

TEST(Baselines, SlurmDoesNotPutBackWhatTheRestMakesUnnecessary) {
  Cluster cluster;
  cluster.Add(1, 1);
  cluster.Add(2, 4);
  EXPECT_THAT(Victims(cluster.For(Strategy::kSlurmPreempt, 4)), ElementsAre(1, 2));
}

TEST(Baselines, YoungestFirstTakesWhatWasStartedLast) {
  Cluster cluster;
  cluster.Add(3, 1);
  cluster.Add(2, 1);
  cluster.Add(1, 1);
  EXPECT_THAT(Victims(cluster.For(Strategy::kSlurmYoungestFirst, 2)), ElementsAre(1, 2));
}

TEST(Baselines, KueuePutsBackInReverse) {
  Cluster cluster;
  cluster.Add(1, 1);
  cluster.Add(2, 4);
  EXPECT_THAT(Victims(cluster.For(Strategy::kKueueClassical, 4)), ElementsAre(2));
}

TEST(Baselines, PbsSuspendsWhereMemoryAllowsAndCheckpointsElse) {
  Cluster cluster;
  cluster.Add(1, 1);
  EXPECT_EQ(cluster.For(Strategy::kPbsOrder, 1, Bytes{3LL << 30}).steps[0].method, Method::kSuspend);
  EXPECT_EQ(cluster.For(Strategy::kPbsOrder, 1, Bytes{4LL << 30}).steps[0].method, Method::kCheckpoint);
}

TEST(Baselines, OnDemandJobsAreNoVictims) {
  Cluster cluster;
  cluster.Add(1, 1);
  cluster.snapshot.jobs[0].kind = JobKind::kOnDemand;
  EXPECT_FALSE(cluster.For(Strategy::kSlurmPreempt, 1).feasible);
}

TEST(Baselines, FreeNodesAreTakenBeforeThoseThatSomebodyMustLeave) {
  Cluster cluster;
  cluster.Add(1, 1);
  cluster.Add(2, 1);
  cluster.snapshot.jobs.pop_back();
  cluster.snapshot.nodes[1].free.slots = 1;
  const Plan plan = cluster.For(Strategy::kSlurmPreempt, 1);
  EXPECT_TRUE(plan.steps.empty());
  EXPECT_THAT(plan.nodes, ElementsAre(NodeId("n1")));
}

}  // namespace
}  // namespace siding
