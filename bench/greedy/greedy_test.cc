#include "bench/greedy/greedy.h"

#include <algorithm>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/planner.h"
#include "planner/random_cluster.h"

namespace siding::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::vector<int64_t> Victims(const Plan& plan) {
  std::vector<int64_t> ids;
  for (const PlanStep& step : plan.steps) ids.push_back(step.job.value());
  return ids;
}

Plan GreedyPlan(const Snapshot& snapshot, const Request& request) {
  return MakeGreedyPlans(snapshot, {request}, NoMargin()).front();
}

// Killed, it loses so much on each of its nodes.
JobView Killable(int id, std::vector<int> nodes, int lost) {
  JobView job = MakeJob(id, std::move(nodes), {Method::kKill});
  job.durable_at = kNow - seconds(lost);
  return job;
}

TEST(GreedyTest, TakesTheCheapestForEachNode) {
  const Snapshot snapshot =
      MakeSnapshot(4, {Killable(1, {0}, 30), Killable(2, {1, 2}, 20), Killable(3, {3}, 10)});
  EXPECT_THAT(Victims(GreedyPlan(snapshot, MakeRequest(3))), UnorderedElementsAre(2, 3));
}

TEST(GreedyTest, PutsBackWhatTheRestMakesUnnecessary) {
  const Snapshot snapshot = MakeSnapshot(3, {Killable(1, {0}, 10), Killable(2, {1, 2}, 20)});
  EXPECT_THAT(Victims(GreedyPlan(snapshot, MakeRequest(2))), UnorderedElementsAre(2));
}

TEST(GreedyTest, ANodeThatHasBecomeDearerWaitsItsTurn) {
  // Only one of the two images can be written in time: 100 MiB within 1.5 s.
  JobView first = MakeJob(1, {0}, {Method::kCheckpoint, Method::kKill});
  JobView second = MakeJob(2, {1}, {Method::kCheckpoint, Method::kKill});
  first.kill_grace = second.kill_grace = seconds(0);
  Snapshot snapshot = MakeSnapshot(3, {first, second, Killable(3, {2}, 30)});
  snapshot.jobs[2].kill_grace = seconds(0);
  for (NodeView& node : snapshot.nodes) {
    node.local = {};
    node.shared.dump.bytes_per_second = node.shared.restore.bytes_per_second = 1000.0 * kMiB;
  }
  const Plan plan = GreedyPlan(snapshot, MakeRequest(2, std::chrono::milliseconds(1500)));
  EXPECT_THAT(Victims(plan), UnorderedElementsAre(1, 3));
}

TEST(GreedyTest, WhereTheCheapestWaysTakeTooMuchThoseAreTriedThatWriteLess) {
  // Its image takes all that can be written, and the other can leave in no other way.
  JobView either = MakeJob(1, {0}, {Method::kCheckpoint, Method::kKill});
  JobView image_only = MakeJob(2, {1}, {Method::kCheckpoint});
  image_only.memory = {Bytes{120 * kMiB}};
  Snapshot snapshot = MakeSnapshot(2, {either, image_only});
  snapshot.jobs[0].kill_grace = seconds(0);
  for (NodeView& node : snapshot.nodes) {
    node.local = {};
    node.shared.dump.bytes_per_second = node.shared.restore.bytes_per_second = 1000.0 * kMiB;
  }
  const Plan plan = GreedyPlan(snapshot, MakeRequest(2, std::chrono::milliseconds(1500)));
  ASSERT_TRUE(plan.feasible);
  EXPECT_THAT(Victims(plan), UnorderedElementsAre(1, 2));
}

class JudgeTest : public testing::Test {
 protected:
  std::string Wrong() const { return WhatIsWrong(snapshot_, {request_}, NoMargin(), {plan_}); }

  Snapshot snapshot_ = MakeSnapshot(3, {MakeJob(1, {0}, {Method::kCheckpoint}),
                                        MakeJob(2, {1}, {Method::kCheckpoint}), Killable(3, {2}, 30)});
  Request request_ = MakeRequest(3);
  Plan plan_ = MakePlan(snapshot_, request_, NoMargin());
};

TEST_F(JudgeTest, FindsNothingWrongWithAGoodPlan) { EXPECT_EQ(Wrong(), ""); }

TEST_F(JudgeTest, FindsANodeThatIsNotFree) {
  plan_.cost_node_seconds -= plan_.steps.back().loss_node_seconds;
  plan_.steps.pop_back();
  EXPECT_THAT(Wrong(), HasSubstr("is not free by then"));
}

TEST_F(JudgeTest, FindsANodeThatIsGrantedTwice) {
  plan_.nodes[1] = plan_.nodes[0];
  EXPECT_THAT(Wrong(), HasSubstr("is granted twice"));
}

TEST_F(JudgeTest, FindsAVictimThatIsLate) {
  request_.start_by = kNow + seconds(1);
  EXPECT_THAT(Wrong(), HasSubstr("is late"));
}

TEST_F(JudgeTest, FindsAVictimThatCannotLeaveSo) {
  for (PlanStep& step : plan_.steps) step.method = Method::kSuspend;
  EXPECT_THAT(Wrong(), HasSubstr("cannot leave so"));
}

TEST_F(JudgeTest, FindsThatSharedStorageCannotTakeIt) {
  for (NodeView& node : snapshot_.nodes) node.local = {};
  plan_ = MakePlan(snapshot_, request_, NoMargin());
  ASSERT_EQ(Wrong(), "");
  snapshot_.shared.in_flight = Bytes{5900 * kMiB};
  EXPECT_THAT(Wrong(), HasSubstr("to shared storage"));
}

TEST_F(JudgeTest, FindsAWrongCost) {
  plan_.cost_node_seconds += 1;
  EXPECT_THAT(Wrong(), HasSubstr("node-seconds, and says"));
}

bool Migrates(const Plan& plan) {
  return std::any_of(plan.steps.begin(), plan.steps.end(),
                     [](const PlanStep& step) { return !step.target.empty(); });
}

// With steps so fine that rounding does not matter.
class GreedyAndExactTest : public testing::TestWithParam<int> {};

TEST_P(GreedyAndExactTest, BothKeepAllLimitsAndGreedyIsNotCheaper) {
  std::mt19937 random(17 + GetParam());
  int both = 0, dearer = 0;
  for (int i = 0; i < 2000; ++i) {
    SCOPED_TRACE(i);
    Instance x = RandomInstance(random, GetParam());
    x.policy.budget_steps = 1 << 20;
    const Plan exact = MakePlan(x.snapshot, x.request, x.policy);
    const std::vector<Plan> greedy = MakeGreedyPlans(x.snapshot, {x.request}, x.policy);
    if (exact.feasible && !Migrates(exact)) {
      ASSERT_EQ(WhatIsWrong(x.snapshot, {x.request}, x.policy, {exact}), "");
    }
    if (!greedy.front().feasible) continue;
    ASSERT_EQ(WhatIsWrong(x.snapshot, {x.request}, x.policy, greedy), "");
    ASSERT_TRUE(exact.feasible);
    ASSERT_GE(greedy.front().cost_node_seconds, exact.cost_node_seconds - 1e-6);
    ++both;
    dearer += greedy.front().cost_node_seconds > exact.cost_node_seconds + 1e-6;
  }
  EXPECT_GT(both, 300);
  EXPECT_GT(dearer, 10);
}

INSTANTIATE_TEST_SUITE_P(Slots, GreedyAndExactTest, testing::Values(1, 2, 4));

}  // namespace
}  // namespace siding::test
