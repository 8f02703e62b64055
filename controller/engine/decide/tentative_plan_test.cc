#include "controller/engine/decide/tentative_plan.h"

#include "gtest/gtest.h"
#include "planner/small_cluster.h"

namespace siding::test {
namespace {

using std::chrono::milliseconds;

// Of job 1 on n0, which is to make way, and job 2 on n1, which is too large to be asked for it.
class TrialTest : public testing::Test {
 protected:
  TrialTest() {
    task_.requests = {MakeRequest(1)};
    task_.alone = MakeSnapshot(2, {MakeJob(1, {0}, {Method::kSuspend}), MakeJob(2, {1}, {})});
    trial_ = Tried();
  }
  TentativePlan Tried() const {
    return PlanTentatively(std::make_shared<const PlanningTask>(task_), MakeFirstPlans(task_));
  }
  bool Shaken(JobId job, EventBody body) const {
    return Invalidates({1, kNow, job, std::move(body)}, trial_);
  }

  PlanningTask task_;
  TentativePlan trial_;
};

TEST_F(TrialTest, RestsOnItsVictim) { EXPECT_TRUE(Shaken(JobId(1), RankExited{})); }

TEST_F(TrialTest, DoesNotRestOnJobsElsewhere) { EXPECT_FALSE(Shaken(JobId(2), RankExited{})); }

TEST_F(TrialTest, DoesNotRestOnJobsThatComeAfterIt) { EXPECT_FALSE(Shaken(JobId(3), JobSubmitted{})); }

TEST_F(TrialTest, RestsOnThereBeingNoOtherPlan) { EXPECT_TRUE(Shaken(JobId(3), RequestPlanned{})); }

TEST_F(TrialTest, RestsOnNodesNotBeingCordoned) { EXPECT_TRUE(Shaken(JobId(), NodeCordoned{})); }

TEST_F(TrialTest, KnowsWhatWasFreeOnTheNodesThatItUses) {
  ASSERT_EQ(trial_.free.size(), 1u);
  EXPECT_EQ(trial_.free.begin()->first, NodeId("n0"));
  EXPECT_EQ(trial_.free.begin()->second, task_.alone.nodes[0].free);
}

TEST_F(TrialTest, RestsOnAJobThatStaysOnANodeThatItUses) {
  task_.alone.jobs.push_back(MakeJob(3, {0}, {}));
  task_.alone.jobs.back().per_node = {0, Bytes{0}, 0};
  trial_ = Tried();
  EXPECT_TRUE(Shaken(JobId(3), RankExited{}));
}

TEST_F(TrialTest, IsInTimeAsLongAsItsPlanIsWithTheTimeThatPassedSince) {
  const Request request = task_.requests.front();
  const Time latest = kNow + (request.start_by - trial_.plans.front().predicted_start);
  EXPECT_TRUE(IsInTime(trial_, request, NoMargin(), latest));
  EXPECT_FALSE(IsInTime(trial_, request, NoMargin(), latest + milliseconds(1)));
}

TEST_F(TrialTest, SaysWhatElseCouldBeDone) {
  task_.alone.jobs[1].methods = {Method::kKill};
  const auto without = PlansWithout(task_, MakeFirstPlans(task_));
  ASSERT_EQ(without.size(), 1u);
  EXPECT_EQ(without[0].jobs, std::vector<JobId>{JobId(2)});
}

TEST_F(TrialTest, OfALaterStartThanWasAskedForNothingElseIsSaid) {
  Plan late = MakeFirstPlans(task_).front();
  late.refusal = "late: ";
  EXPECT_TRUE(PlansWithout(task_, {late}).empty());
}

}  // namespace
}  // namespace siding::test
