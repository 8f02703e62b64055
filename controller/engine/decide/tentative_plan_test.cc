#include "controller/engine/decide/tentative_plan.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "planner/planner.h"
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

TEST_F(TrialTest, RestsOnItsVictimBeingThere) {
  EXPECT_TRUE(Shaken(JobId(1), JobMoved{.event = JobEvent::kOrderDump, .keep_running = true}));
}

// It holds its nodes as before.
TEST_F(TrialTest, DoesNotRestOnWhetherAnotherIsSaved) {
  trial_.jobs.insert(JobId(2));
  ASSERT_TRUE(Shaken(JobId(2), RankExited{}));
  EXPECT_FALSE(Shaken(JobId(2), JobMoved{.event = JobEvent::kOrderDump, .keep_running = true}));
  EXPECT_FALSE(Shaken(JobId(2), JobMoved{.event = JobEvent::kContinued}));
  EXPECT_FALSE(Shaken(JobId(2), CheckpointChanged{.state = CheckpointState::kGone}));
  EXPECT_TRUE(Shaken(JobId(2), JobMoved{.event = JobEvent::kOrderDump}));
  EXPECT_TRUE(Shaken(JobId(2), JobMoved{.event = JobEvent::kDumpFailed}));
}

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

// Each of them may be taken, and not both.
TEST_F(TrialTest, NoMoreIsTakenThanAnAllowanceThatJobsShare) {
  task_.requests = {MakeRequest(2)};
  task_.alone = MakeSnapshot(3, {MakeJob(1, {0}, {Method::kSuspend}), MakeJob(2, {1}, {Method::kSuspend}),
                                 MakeJob(3, {2}, {Method::kKill})});
  const auto victims = [&] {
    const std::vector<Plan> plans = MakePlans(task_);
    std::set<JobId> jobs;
    for (const PlanStep& step : plans.front().steps) jobs.insert(step.job);
    return jobs;
  };
  EXPECT_EQ(victims(), (std::set{JobId(1), JobId(2)}));
  for (const JobId job : {JobId(1), JobId(2)}) task_.allowances[job] = {{"the disruption budget b", 1, 1}};
  EXPECT_EQ(victims().size(), 2u);
  EXPECT_TRUE(victims().contains(JobId(3)));
  task_.requests = {MakeRequest(3)};
  const Plan refused = MakePlans(task_).front();
  EXPECT_FALSE(refused.feasible);
}
TEST_F(TrialTest, AllowancesOfDifferentNamesAreNotShared) {
  task_.requests = {MakeRequest(2)};
  task_.alone = MakeSnapshot(3, {MakeJob(1, {0}, {Method::kSuspend}), MakeJob(2, {1}, {Method::kSuspend}),
                                 MakeJob(3, {2}, {Method::kKill})});
  task_.allowances[JobId(1)] = {{"the disruption budget d/b", 1, 1}};
  task_.allowances[JobId(2)] = {{"the disruption budget e/b", 1, 1}};
  const std::vector<Plan> plans = MakePlans(task_);
  std::set<JobId> victims;
  for (const PlanStep& step : plans.front().steps) victims.insert(step.job);
  EXPECT_EQ(victims, (std::set{JobId(1), JobId(2)}));
}
// The engine's lock may be held meanwhile.
TEST_F(TrialTest, AnAllowanceOfManyTakesTwoPlans) {
  std::vector<JobView> jobs;
  for (int i = 0; i < 12; ++i) {
    jobs.push_back(MakeJob(i + 1, {i}, {i < 8 ? Method::kSuspend : Method::kKill}));
    if (i < 8) task_.allowances[JobId(i + 1)] = {{"the disruption budget b", 1, 2}};
  }
  task_.requests = {MakeRequest(6)};
  task_.alone = MakeSnapshot(12, std::move(jobs));
  int plans = 0;
  const std::vector<Plan> made = WithinAllowances(task_, task_.alone, [&](const Snapshot& snapshot) {
    ++plans;
    return std::vector{MakePlan(snapshot, task_.requests.front(), task_.policy)};
  });
  EXPECT_EQ(plans, 2);
  EXPECT_TRUE(made.front().feasible) << made.front().refusal;
  EXPECT_EQ(std::count_if(made.front().steps.begin(), made.front().steps.end(),
                          [](const PlanStep& step) { return step.job <= JobId(8); }),
            2);
}

// One that is about to leave has taken its part already.
TEST_F(TrialTest, WhatIsLeavingCountsAsTaken) {
  task_.requests = {MakeRequest(1)};
  task_.alone = MakeSnapshot(
      3, {MakeJob(1, {0}, {}), MakeJob(2, {1}, {Method::kSuspend}), MakeJob(3, {2}, {Method::kKill})});
  task_.alone.jobs[0].releasing_at = kNow + std::chrono::hours(9);
  task_.alone.jobs[0].releasing_for = JobId(9);
  for (const JobId job : {JobId(1), JobId(2)}) task_.allowances[job] = {{"the disruption budget b", 1, 1}};
  const Plan plan = MakePlans(task_).front();
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps.front().job, JobId(3));
}

TEST_F(TrialTest, IsInTimeAsLongAsItsPlanIsWithTheTimeThatPassedSince) {
  const Request request = task_.requests.front();
  const Time latest = kNow + (request.start_by - trial_.plans.front().predicted_start);
  EXPECT_TRUE(IsInTime(trial_, request, NoMargin(), latest));
  EXPECT_FALSE(IsInTime(trial_, request, NoMargin(), latest + milliseconds(1)));
}

TEST_F(TrialTest, WhatElseCouldBeDoneTakesNoMoreOfAnAllowanceEither) {
  task_.requests = {MakeRequest(2)};
  task_.alone = MakeSnapshot(3, {MakeJob(1, {0}, {Method::kSuspend}), MakeJob(2, {1}, {Method::kSuspend}),
                                 MakeJob(3, {2}, {Method::kKill})});
  for (const JobId job : {JobId(1), JobId(2)}) task_.allowances[job] = {{"the disruption budget b", 1, 1}};
  for (const PlanWithout& without : PlansWithout(task_, MakePlans(task_)))
    EXPECT_EQ(without.feasible, without.spared != JobId(3)) << without.spared.value();
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
