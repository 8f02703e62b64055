#include "controller/api/views.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Nodes a and b; a job of 3 slots on each of both.
class NodesTest : public testing::Test {
 protected:
  NodesTest() {
    state_.observed_nodes[NodeId("a")].connected = true;
    state_.observed_nodes[NodeId("b")].connected = true;
    JobSpec spec;
    spec.nodes = 2;
    spec.per_node.slots = 3;
    Feed(JobSubmitted{spec});
    JobMoved placed;
    placed.nodes = {NodeId("a"), NodeId("b")};
    Feed(placed);
    Feed(JobEvent::kStarted);
  }
  void Feed(EventBody body) { Apply(state_, Event{++seq_, FromMicros(seq_), JobId(1), std::move(body)}); }
  void Feed(JobEvent event) {
    JobMoved move;
    move.event = event;
    Feed(move);
  }

  ClusterState state_;
  int64_t seq_ = 0;
};

TEST_F(NodesTest, AGangIsShownOnEachOfItsNodes) {
  const v1::ListNodesResponse nodes = ShowNodes(state_);
  ASSERT_EQ(nodes.nodes_size(), 2);
  EXPECT_THAT(nodes.nodes(0).jobs(), ElementsAre(1));
  EXPECT_THAT(nodes.nodes(1).jobs(), ElementsAre(1));
}

TEST_F(NodesTest, TasksOfJobsThatNobodyKnowsAreShown) {
  const auto report = [&](int64_t job, v1::TaskPhase phase) {
    const TaskId id{JobId(job), 1, 0};
    v1::TaskReport& task = state_.observed_tasks[NodeId("a")][id].report;
    task.mutable_task()->set_job(job);
    task.mutable_task()->set_incarnation(1);
    task.set_phase(phase);
  };
  report(1, v1::RUNNING);
  report(58, v1::RUNNING);
  report(59, v1::EXITED);
  const v1::ListNodesResponse nodes = ShowNodes(state_);
  EXPECT_THAT(nodes.nodes(0).strays(), ElementsAre("58.1.0"));
  EXPECT_THAT(nodes.nodes(1).strays(), IsEmpty());
}

TEST_F(NodesTest, AJobThatWasStartedFromTheBeginningAgainSaysSoUntilItEnds) {
  JobMoved gone;
  gone.event = JobEvent::kRestartNeeded;
  gone.reason = "rank 0 on a is gone";
  Feed(gone);
  JobMoved placed;
  placed.nodes = {NodeId("a"), NodeId("b")};
  Feed(placed);
  Feed(JobEvent::kStarted);
  EXPECT_EQ(ShowJob(state_, state_.jobs.at(JobId(1))).reason(),
            "started from the beginning again at 1970-01-01T00:00:00.000Z: rank 0 on a is gone");
  Feed(JobEvent::kSucceeded);
  EXPECT_EQ(ShowJob(state_, state_.jobs.at(JobId(1))).reason(), "");
}

TEST(Jobs, OneThatStartedBehindItsDeadlineSaysSo) {
  JobRecord job;
  job.spec.kind = JobKind::kOnDemand;
  job.spec.start_by = FromMicros(10'000'000);
  job.first_started = FromMicros(9'000'000);
  EXPECT_EQ(ShowJob(ClusterState(), job).reason(), "");
  job.first_started = FromMicros(22'000'000);
  EXPECT_EQ(ShowJob(ClusterState(), job).reason(), "started 12.0s after its deadline");
}

TEST_F(NodesTest, AJobsTimerIsShownButToOthers) {
  const JobRecord& job = state_.jobs.at(JobId(1));
  v1::TaskReport& report =
      state_.observed_tasks[NodeId("b")][TaskId{job.id, job.incarnation, job.first_rank + 1}].report;
  report.set_timer("process 12 (timeout) has a POSIX timer on CLOCK_REALTIME");
  EXPECT_EQ(ShowJob(state_, job).timer(), report.timer());
  EXPECT_EQ(ShowOthersJob(state_, job).timer(), "");
}

TEST_F(NodesTest, AJobThatMakesWaySaysForWhom) {
  EXPECT_EQ(ShowJob(state_, state_.jobs.at(JobId(1))).made_way_for(), 0);
  JobMoved order;
  order.event = JobEvent::kOrderSuspend;
  order.request = JobId(7);
  Feed(order);
  EXPECT_EQ(ShowJob(state_, state_.jobs.at(JobId(1))).made_way_for(), 7);
}

// Job 1 is on a and b; request 7 is to have both, by its plans.
class PlanSummaryTest : public NodesTest {
 protected:
  PlanSummaryTest() {
    JobSpec spec;
    spec.kind = JobKind::kOnDemand;
    spec.start_by = FromMicros(60'000'000);
    Apply(state_, Event{++seq_, FromMicros(seq_), kRequest, JobSubmitted{spec}});
  }
  void PlannedFrom(std::vector<JobId> victims) {
    Plan plan;
    plan.request = kRequest;
    plan.feasible = true;
    plan.predicted_start = FromMicros(12'000'000);
    for (const JobId& job : victims) {
      plan.steps.emplace_back().job = job;
      plan.steps.back().nodes = {NodeId("a"), NodeId("b")};
    }
    Planned(std::move(plan));
  }
  void Planned(Plan plan) {
    Apply(state_, Event{++seq_, FromMicros(seq_), kRequest, RequestPlanned{std::move(plan)}});
  }
  void Ordered(JobEvent event) {
    JobMoved order;
    order.event = event;
    order.request = kRequest;
    order.checkpoint = CheckpointId("1.1");
    Feed(order);
  }
  v1::PlanSummary Shown() const { return ShowJob(state_, state_.jobs.at(kRequest)).plan(); }
  std::pair<int, int> Away() const { return {Shown().victims_away(), Shown().victims()}; }

  static inline const JobId kRequest{7};
};

TEST_F(PlanSummaryTest, SaysWhenItStartsByTheNewestPlanAndHowLongBeforeItsDeadline) {
  PlannedFrom({});
  PlannedFrom({JobId(1)});
  EXPECT_TRUE(Shown().feasible());
  EXPECT_EQ(Shown().predicted_start_us(), 12'000'000);
  EXPECT_EQ(Shown().margin_us(), 48'000'000);
  EXPECT_EQ(Shown().plans(), 2);
}

TEST_F(PlanSummaryTest, SaysWhyThereIsNoStart) {
  Plan plan;
  plan.refusal = "too few nodes";
  Planned(std::move(plan));
  EXPECT_FALSE(Shown().feasible());
  EXPECT_EQ(Shown().refusal(), "too few nodes");
  EXPECT_EQ(Shown().predicted_start_us(), 0);
  EXPECT_EQ(Shown().margin_us(), 0);
}

TEST_F(PlanSummaryTest, AJobHasMadeWayWhenItIsOffItsNodesOrFrozenThere) {
  PlannedFrom({JobId(1)});
  EXPECT_EQ(Away(), std::pair(0, 1));
  Ordered(JobEvent::kOrderSuspend);
  EXPECT_EQ(Away(), std::pair(0, 1));
  Feed(JobEvent::kFrozen);
  EXPECT_EQ(Away(), std::pair(1, 1));
  Ordered(JobEvent::kOrderDump);
  Feed(JobEvent::kCommit);
  Feed(JobEvent::kReleased);
  EXPECT_EQ(Away(), std::pair(1, 1));
}

TEST_F(PlanSummaryTest, WhoLeftByAnEarlierPlanCountsAndWhoIsSparedByTheNewestDoesNot) {
  PlannedFrom({JobId(1)});
  PlannedFrom({});
  EXPECT_EQ(Away(), std::pair(0, 0));
  Ordered(JobEvent::kOrderSuspend);
  Feed(JobEvent::kFrozen);
  EXPECT_EQ(Away(), std::pair(1, 1));
}

TEST_F(PlanSummaryTest, WhoWasEndedForItCounts) {
  PlannedFrom({JobId(1)});
  Ordered(JobEvent::kOrderKill);
  PlannedFrom({});
  Feed(JobEvent::kFailed);
  EXPECT_EQ(Away(), std::pair(1, 1));
}

TEST_F(PlanSummaryTest, IsForThoseWhoMayActOnTheRequest) {
  PlannedFrom({JobId(1)});
  EXPECT_FALSE(ShowOthersJob(state_, state_.jobs.at(kRequest)).has_plan());
  EXPECT_FALSE(ShowJob(state_, state_.jobs.at(JobId(1))).has_plan());
}

TEST(Events, WhatAnOrderIsForAndShouldTakeIsShown) {
  JobMoved order;
  order.event = JobEvent::kOrderDump;
  order.request = JobId(7);
  order.checkpoint = CheckpointId("3.1");
  order.predicted = FromMicros(20);
  const v1::Event shown = ShowEvent(Event{5, FromMicros(10), JobId(3), order});
  EXPECT_EQ(shown.request(), 7);
  EXPECT_EQ(shown.checkpoint(), "3.1");
  EXPECT_EQ(shown.predicted_us(), 20);
}

TEST(Events, WhereAJobWasPlacedIsShown) {
  JobMoved placed;
  placed.nodes = {NodeId("a"), NodeId("b")};
  const v1::Event shown = ShowEvent(Event{5, FromMicros(10), JobId(3), placed});
  EXPECT_THAT(shown.nodes(), ElementsAre("a", "b"));
  EXPECT_EQ(shown.predicted_us(), 0);
}

TEST_F(NodesTest, WhatItsJobsUseIsAddedUp) { EXPECT_EQ(ShowNodes(state_).nodes(0).used().slots(), 3); }

TEST_F(NodesTest, AFrozenJobIsShownApartAndUsesNoSlots) {
  Feed(JobEvent::kOrderSuspend);
  Feed(JobEvent::kFrozen);
  const v1::Node node = ShowNodes(state_).nodes(0);
  EXPECT_THAT(node.jobs(), IsEmpty());
  EXPECT_THAT(node.suspended_jobs(), ElementsAre(1));
  EXPECT_EQ(node.used().slots(), 0);
}

TEST_F(NodesTest, ACordonedNodeThatIsAwayIsDown) {
  state_.nodes[NodeId("a")].cordoned = true;
  EXPECT_EQ(ShowNodes(state_).nodes(0).state(), "cordoned");
  state_.observed_nodes[NodeId("a")].connected = false;
  EXPECT_EQ(ShowNodes(state_).nodes(0).state(), "down");
}

TEST_F(NodesTest, ANodeThatIsLostSaysSinceWhen) {
  state_.observed_nodes[NodeId("a")].connected = false;
  Feed(NodeLost{NodeId("a"), true, "root"});
  const v1::Node node = ShowNodes(state_).nodes(0);
  EXPECT_EQ(node.state(), "lost");
  EXPECT_EQ(node.lost_since_us(), seq_);
}

TEST_F(NodesTest, ALostNodeIsShownByAControllerThatHasNeverHeardOfIt) {
  state_.observed_nodes.erase(NodeId("b"));
  EXPECT_EQ(ShowNodes(state_).nodes_size(), 1);
  Feed(NodeLost{NodeId("b"), true, "root"});
  ASSERT_EQ(ShowNodes(state_).nodes_size(), 2);
  EXPECT_EQ(ShowNodes(state_).nodes(1).name(), "b");
  EXPECT_EQ(ShowNodes(state_).nodes(1).state(), "lost");
}

TEST_F(NodesTest, HowManyAreLeftAloneIsSaidOfThoseWhoMayBeSeen) {
  Plan plan;
  plan.kept = {{JobId(1), "not needed", KeepRule::kNotNeeded},
               {JobId(2), "not needed", KeepRule::kNotNeeded}};
  plan.kept_groups = {{KeepRule::kNotNeeded, "", "", 10'000}};
  const auto shown = [&](bool may_see) {
    return ShowPlan(plan, ContextOf(state_, plan, [&](const JobRecord&) { return may_see; }), may_see);
  };
  EXPECT_EQ(shown(true).kept_groups(0).jobs(), 10'000);
  EXPECT_EQ(shown(true).kept_size(), 1) << "the other is not there any more";
  EXPECT_THAT(shown(false).kept(), IsEmpty());
  EXPECT_THAT(shown(false).kept_groups(), IsEmpty());
}

// Whoever may not be seen takes no place among those that are named.
TEST_F(NodesTest, SoManyAreNamedOfThoseWhoMayBeSeen) {
  Plan plan;
  plan.kept = {{JobId(2), "not needed", KeepRule::kNotNeeded},
               {JobId(1), "not needed", KeepRule::kNotNeeded}};
  const v1::Plan shown =
      ShowPlan(plan, ContextOf(state_, plan, [](const JobRecord&) { return true; }), false, 1);
  ASSERT_EQ(shown.kept_size(), 1);
  EXPECT_EQ(shown.kept(0).job(), 1);
  EXPECT_EQ(shown.kept_groups(0).jobs(), 1);
}

TEST_F(NodesTest, WhatWouldBeDoneElseNamesNobodyWhoMayNotBeSeen) {
  Plan plan;
  plan.without = {{.spared = JobId(9), .feasible = true, .jobs = {JobId(1), JobId(2)}}};
  const auto shown = [&](bool may_see) {
    return ShowPlan(plan, ContextOf(state_, plan, [&](const JobRecord&) { return may_see; }), true)
        .without(0);
  };
  EXPECT_THAT(shown(true).jobs(), ElementsAre(1)) << "the other is not there any more";
  EXPECT_THAT(shown(false).jobs(), IsEmpty());
}

}  // namespace
}  // namespace siding
