#include "planner/plan_without.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/planner.h"
#include "planner/small_cluster.h"

namespace siding::test {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

// That has computed for so long since its last image, which a kill loses.
JobView Killed(int id, const std::vector<int>& nodes, Duration since_image) {
  JobView job = MakeJob(id, nodes, {Method::kKill});
  job.running_since = job.durable_at = kNow - since_image;
  return job;
}

std::vector<PlanWithout> PlansWithoutFor(const Snapshot& snapshot, const Request& request,
                                         size_t most = kMostSpared) {
  const auto make = [&](const Snapshot& seen) { return MakePlan(seen, request, NoMargin()); };
  return PlansWithout(make(snapshot), snapshot, make, most);
}

TEST(PlanWithoutTest, SparingTheVictimTakesTheNextCheapestJob) {
  const Snapshot snapshot = MakeSnapshot(
      3, {Killed(1, {0}, seconds(100)), Killed(2, {1}, seconds(300)), Killed(3, {2}, seconds(200))});
  const auto without = PlansWithoutFor(snapshot, MakeRequest(1));
  ASSERT_EQ(without.size(), 1u);
  EXPECT_EQ(without[0].spared, JobId(1));
  EXPECT_TRUE(without[0].feasible);
  EXPECT_THAT(without[0].jobs, ElementsAre(JobId(3)));
  const Plan plan = MakePlan(snapshot, MakeRequest(1), NoMargin());
  EXPECT_DOUBLE_EQ(without[0].loss_node_seconds - plan.loss_node_seconds, 100);
}

TEST(PlanWithoutTest, AJobThatIsIndispensableIsSaidToBe) {
  const auto without = PlansWithoutFor(MakeSnapshot(1, {Killed(1, {0}, seconds(100))}), MakeRequest(1));
  ASSERT_EQ(without.size(), 1u);
  EXPECT_FALSE(without[0].feasible);
  EXPECT_THAT(without[0].jobs, IsEmpty());
}

TEST(PlanWithoutTest, OneOfTwoVictimsStaysInEachAlternative) {
  const Snapshot snapshot = MakeSnapshot(4, {Killed(1, {0}, seconds(1)), Killed(2, {1}, seconds(2)),
                                             Killed(3, {2}, seconds(50)), Killed(4, {3}, seconds(60))});
  const auto without = PlansWithoutFor(snapshot, MakeRequest(2));
  ASSERT_EQ(without.size(), 2u);
  for (const PlanWithout& one : without) EXPECT_THAT(one.jobs, testing::Not(testing::Contains(one.spared)));
}

TEST(PlanWithoutTest, TheNextBestPlanIsTheCheapestOfThem) {
  const Snapshot snapshot =
      MakeSnapshot(3, {Killed(1, {0}, seconds(1)), Killed(2, {1}, seconds(20)), Killed(3, {2}, seconds(50))});
  // Without job 1: 2 and 3, 70 s. Without job 2: 1 and 3, 51 s.
  const auto without = PlansWithoutFor(snapshot, MakeRequest(2));
  ASSERT_EQ(without.size(), 2u);
  EXPECT_EQ(without[1].spared, JobId(2));
  EXPECT_THAT(without[1].jobs, ElementsAre(JobId(1), JobId(3)));
  EXPECT_FALSE(without[0].next_best);
  EXPECT_TRUE(without[1].next_best);
}

TEST(PlanWithoutTest, ThereIsNoNextBestPlanWhereNoVictimCanStay) {
  const auto without = PlansWithoutFor(MakeSnapshot(1, {Killed(1, {0}, seconds(9))}), MakeRequest(1));
  ASSERT_EQ(without.size(), 1u);
  EXPECT_FALSE(without[0].next_best);
}

TEST(PlanWithoutTest, ARefusalHasNone) {
  JobView job = Killed(1, {0}, seconds(1));
  job.methods = {};
  EXPECT_THAT(PlansWithoutFor(MakeSnapshot(1, {job}), MakeRequest(1)), IsEmpty());
}

TEST(PlanWithoutTest, MoreVictimsThanPlansThatMayBeMadeHaveNone) {
  const Snapshot snapshot =
      MakeSnapshot(3, {Killed(1, {0}, seconds(1)), Killed(2, {1}, seconds(1)), Killed(3, {2}, seconds(1))});
  EXPECT_THAT(PlansWithoutFor(snapshot, MakeRequest(2), 1), IsEmpty());
  EXPECT_EQ(PlansWithoutFor(snapshot, MakeRequest(2), 2).size(), 2u);
}

}  // namespace
}  // namespace siding::test
