// The planner against an integer program of the same problem, solved by CBC: up to 500 jobs.
#include "bench/milp/milp.h"

#include <cmath>
#include <random>

#include "gtest/gtest.h"
#include "planner/planner.h"

namespace siding {
namespace {

constexpr int64_t kMiB = 1 << 20;

struct Size {
  int jobs, slots, need;
};

// `slots` slots a node: with one, jobs have their nodes to themselves.
class MilpTest : public testing::TestWithParam<Size> {
 protected:
  void SetUp() override {
    if (FindCbc().empty()) GTEST_SKIP() << "cbc is not installed (Debian: coinor-cbc)";
  }

  int Upto(int n) { return static_cast<int>(random_() % (n + 1)); }

  NodeView Node(int n, int slots) {
    NodeView node;
    node.id = NodeId("n" + std::to_string(n));
    node.capacity = node.free = {slots, Bytes{65536 * kMiB}, 0};
    node.ram_available = Bytes{(8192 + Upto(8192)) * kMiB};
    node.local_disk_free = Bytes{Upto(16384) * kMiB};
    node.local = {{500.0 * kMiB, std::chrono::milliseconds(100)},
                  {500.0 * kMiB, std::chrono::milliseconds(100)}};
    node.shared = {{1000.0 * kMiB, std::chrono::milliseconds(100)},
                   {1000.0 * kMiB, std::chrono::milliseconds(100)}};
    return node;
  }

  Snapshot MakeSnapshot(const Size& size) {
    Snapshot snapshot;
    snapshot.now = Time(std::chrono::hours(500'000));
    snapshot.shared.bytes_per_second = 300.0 * kMiB * size.need;
    int open = -1;  // the node that still has slots
    for (int j = 1; j <= size.jobs; ++j) {
      JobView job;
      job.id = JobId(j);
      job.per_node = {1 + Upto(size.slots - 1), Bytes{1024 * kMiB}, 0};
      // Gangs take nodes of their own; single tasks share.
      const int ranks = size.slots == 1 || Upto(4) == 0 ? 1 + Upto(3) : 1;
      for (int rank = 0; rank < ranks; ++rank) {
        if (ranks > 1 || open < 0 || !snapshot.nodes[open].free.Covers(job.per_node)) {
          open = static_cast<int>(snapshot.nodes.size());
          snapshot.nodes.push_back(Node(open, size.slots));
        }
        snapshot.nodes[open].free -= job.per_node;
        job.nodes.push_back(snapshot.nodes[open].id);
        job.memory.push_back(Bytes{(256 + Upto(8192)) * kMiB});
      }
      for (Method m : kAllMethods) {
        if (Upto(2) > 0) job.methods.Add(m);
      }
      if (Upto(1) == 0) job.methods.Remove(Method::kSuspend);  // or all would be free of charge
      job.app_grace = std::chrono::seconds(1 + Upto(12));
      job.kill_grace = std::chrono::seconds(Upto(12));
      job.running_since = snapshot.now - std::chrono::hours(2);
      job.durable_at = snapshot.now - std::chrono::seconds(1 + Upto(3600));
      snapshot.jobs.push_back(std::move(job));
    }
    return snapshot;
  }

  std::mt19937 random_{11};
};

TEST_P(MilpTest, CbcFindsNothingBetter) {
  const Size size = GetParam();
  Policy policy;
  policy.margin = std::chrono::seconds(0);
  policy.delay_weight = 0.05;
  int feasible = 0;
  for (int round = 0; round < 4; ++round) {
    const Snapshot snapshot = MakeSnapshot(size);
    const Request request{JobId(99999),
                          size.need,
                          {size.slots, Bytes{4096 * kMiB}, 0},
                          snapshot.now + std::chrono::seconds(9 + 2 * round)};
    const MilpAnswer milp = SolveWithCbc(snapshot, request, policy, 20);
    const Plan plan = MakePlan(snapshot, request, policy);
    if (!milp.proven) continue;
    ASSERT_EQ(plan.feasible, milp.feasible) << plan.refusal;
    if (!plan.feasible) continue;
    ++feasible;
    ASSERT_TRUE(plan.exact);
    ASSERT_NEAR(plan.cost_node_seconds, milp.cost_seconds, 0.002 + 1e-6 * milp.cost_seconds)
        << "round " << round;
  }
  EXPECT_GT(feasible, 0);
}

INSTANTIATE_TEST_SUITE_P(Sizes, MilpTest,
                         testing::Values(Size{30, 1, 10}, Size{100, 1, 40}, Size{500, 1, 150}, Size{40, 4, 6},
                                         Size{200, 4, 20}));

}  // namespace
}  // namespace siding
