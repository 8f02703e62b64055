// Guards that end, and jobs that do: a victim counts from a moment on, and a plan waits for it.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/planner.h"
#include "planner/small_cluster.h"

namespace siding::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Policy WithMinRuntime(Duration min_runtime) {
  Policy policy = NoMargin();
  policy.min_runtime = min_runtime;
  return policy;
}

JobView Young(JobView job, Duration age = milliseconds(500)) {
  job.running_since = kNow - age;
  return job;
}

JobView Ending(JobView job, Duration in) {
  job.kind = JobKind::kOnDemand;
  job.methods = {};
  job.ends_at = kNow + in;
  return job;
}

Plan PlanFor(std::vector<JobView> jobs, Duration start_in, const Policy& policy = NoMargin()) {
  const int nodes = static_cast<int>(jobs.size());
  return MakePlan(MakeSnapshot(nodes, std::move(jobs)), MakeRequest(nodes, start_in), policy);
}

TEST(GuardsTest, AJobThatHasRunTooShortLeavesWhenItHasRunLongEnough) {
  const Plan plan =
      PlanFor({Young(MakeJob(1, {0}, {Method::kSuspend}))}, seconds(8), WithMinRuntime(seconds(3)));
  ASSERT_TRUE(plan.feasible);
  EXPECT_EQ(plan.steps.at(0).begin, kNow + milliseconds(2500));
}

TEST(GuardsTest, AJobInItsCooldownLeavesAfterIt) {
  JobView job = MakeJob(1, {0}, {Method::kSuspend});
  job.last_preempted = kNow - seconds(2);
  Policy policy = NoMargin();
  policy.cooldown = seconds(10);
  const Plan plan = PlanFor({job}, seconds(15), policy);
  ASSERT_TRUE(plan.feasible);
  EXPECT_EQ(plan.steps.at(0).begin, kNow + seconds(8));
}

TEST(GuardsTest, AJobThatIsBeingSavedLeavesWhenItHasBeen) {
  JobView job = MakeJob(1, {0}, {Method::kSuspend});
  job.saved_by = kNow + seconds(4);
  const Plan plan = PlanFor({job}, seconds(8));
  ASSERT_TRUE(plan.feasible);
  EXPECT_EQ(plan.steps.at(0).begin, kNow + seconds(4));
}

TEST(GuardsTest, AndSaysSoWhereThatIsTooLate) {
  JobView job = MakeJob(1, {0}, {Method::kSuspend});
  job.saved_by = kNow + seconds(4);
  const Plan plan = PlanFor({job}, seconds(2));
  ASSERT_FALSE(plan.feasible);
  EXPECT_EQ(plan.kept.at(0).rule, KeepRule::kBeingSaved);
  EXPECT_EQ(plan.kept.at(0).from, kNow + seconds(4));
  EXPECT_THAT(plan.kept.at(0).reason, HasSubstr("a checkpoint of it is being made, until "));
}

TEST(GuardsTest, WhereThatIsTooLateItCanBeKilled) {
  JobView job = MakeJob(1, {0}, {Method::kSuspend, Method::kKill});
  job.saved_by = kNow + seconds(60);
  const Plan plan = PlanFor({job}, seconds(20));
  ASSERT_TRUE(plan.feasible);
  EXPECT_EQ(plan.steps.at(0).method, Method::kKill);
  EXPECT_EQ(plan.steps.at(0).begin, Time{});
}

TEST(GuardsTest, ASecondImageIsTakenEarlyWhereTheOneThatIsBeingMadeIsDoneByThen) {
  Snapshot snapshot = MakeSnapshot(1, {MakeJob(1, {0}, {Method::kCheckpoint})});
  snapshot.nodes[0].local.dump = snapshot.nodes[0].shared.dump = {50.0 * kMiB, seconds(8)};
  Request request = MakeRequest(1);
  request.not_before = kNow + seconds(52);
  snapshot.jobs[0].saved_by = kNow + seconds(4);
  const Plan plan = MakePlan(snapshot, request, NoMargin());
  ASSERT_TRUE(plan.feasible);
  EXPECT_TRUE(plan.steps.at(0).early);
  snapshot.jobs[0].saved_by = kNow + seconds(48);
  EXPECT_FALSE(MakePlan(snapshot, request, NoMargin()).feasible);
}

TEST(GuardsTest, TheGuardThatEndsLastCounts) {
  JobView job = Young(MakeJob(1, {0}, {Method::kSuspend}));
  job.last_preempted = kNow - seconds(2);
  Policy policy = WithMinRuntime(seconds(3));
  policy.cooldown = seconds(10);
  EXPECT_EQ(PlanFor({job}, seconds(15), policy).steps.at(0).begin, kNow + seconds(8));
}

TEST(GuardsTest, TheReasonSaysFromWhenAndWhy) {
  const Plan plan =
      PlanFor({Young(MakeJob(1, {0}, {Method::kSuspend}))}, seconds(8), WithMinRuntime(seconds(3)));
  EXPECT_THAT(plan.steps.at(0).reason,
              HasSubstr("not before 1970-01-12T13:46:42.500Z as it has run for 500ms"));
}

TEST(GuardsTest, ADumpBeginsAfterTheGuardAndTakesItsTime) {
  const JobView job = MakeJob(1, {0}, {Method::kCheckpoint});
  const Duration takes = PlanFor({job}, seconds(8)).predicted_start - kNow;
  const Plan plan = PlanFor({Young(job)}, seconds(8), WithMinRuntime(seconds(3)));
  ASSERT_TRUE(plan.feasible);
  EXPECT_EQ(plan.predicted_start - kNow, milliseconds(2500) + takes);
  EXPECT_FALSE(PlanFor({Young(job)}, milliseconds(2500) + takes - milliseconds(1), WithMinRuntime(seconds(3)))
                   .feasible);
}

TEST(GuardsTest, AKillLosesTheWaitAsWell) {
  JobView job = Young(MakeJob(1, {0}, {Method::kKill}));
  job.durable_at = job.running_since;
  EXPECT_EQ(PlanFor({job}, seconds(8), WithMinRuntime(seconds(3))).loss_node_seconds, 3);
}

TEST(GuardsTest, OnlyWhatIsLeftOfAGuardAtTheArrivalCounts) {
  Request request = MakeRequest(1, seconds(20));
  request.not_before = kNow + seconds(10);
  const Plan plan = MakePlan(MakeSnapshot(1, {Young(MakeJob(1, {0}, {Method::kSuspend}))}), request,
                             WithMinRuntime(seconds(3)));
  ASSERT_TRUE(plan.feasible);
  EXPECT_EQ(plan.steps.at(0).begin, request.not_before);
}

TEST(GuardsTest, AnImageInAdvanceIsMadeInSpiteOfTheGuardAndTheJobEndedAfterIt) {
  Snapshot snapshot = MakeSnapshot(1, {Young(MakeJob(1, {0}, {Method::kCheckpoint}))});
  snapshot.nodes[0].local.dump = snapshot.nodes[0].shared.dump = {50.0 * kMiB, seconds(8)};
  Request request = MakeRequest(1);
  request.not_before = kNow + seconds(52);
  const Plan plan = MakePlan(snapshot, request, WithMinRuntime(seconds(54)));
  ASSERT_TRUE(plan.feasible);
  EXPECT_TRUE(plan.steps.at(0).early);
  EXPECT_LT(plan.steps.at(0).begin, request.not_before);
  EXPECT_EQ(plan.steps.at(1).begin, kNow + milliseconds(53500));
}

TEST(GuardsTest, DumpsThatBeginAfterDifferentGuardsShareTheirNodesWay) {
  Snapshot snapshot = MakeSnapshot(1, {});
  snapshot.nodes[0].capacity.slots = 2;
  snapshot.nodes[0].local = {};
  for (int id : {1, 2}) {
    snapshot.jobs.push_back(Young(MakeJob(id, {0}, {Method::kCheckpoint}), seconds(id)));
    snapshot.jobs.back().memory = {Bytes{95 * kMiB}};  // 2 s
  }
  Request request = MakeRequest(1, seconds(8));
  request.per_node.slots = 2;
  // From 3 s and 4 s on: both are written by 7 s.
  EXPECT_TRUE(MakePlan(snapshot, request, WithMinRuntime(seconds(5))).feasible);
  request.start_by = kNow + milliseconds(6900);
  EXPECT_FALSE(MakePlan(snapshot, request, WithMinRuntime(seconds(5))).feasible);
}

TEST(GuardsTest, WhoCouldLeaveAtOnceRunsOnWhileAnotherCannot) {
  const Plan plan = PlanFor({MakeJob(1, {0}, {Method::kSuspend}), Young(MakeJob(2, {1}, {Method::kSuspend}))},
                            seconds(8), WithMinRuntime(seconds(3)));
  ASSERT_TRUE(plan.feasible);
  EXPECT_EQ(plan.steps.at(0).begin, kNow + milliseconds(2500));
  EXPECT_EQ(plan.steps.at(1).begin, kNow + milliseconds(2500));
}

TEST(GuardsTest, SoItDoesIfAnotherRequestIsPlannedBesideIt) {
  std::vector<JobView> jobs;
  for (int n = 0; n < 3; ++n) jobs.push_back(MakeJob(n + 1, {n}, {Method::kSuspend}));
  jobs[2] = Young(jobs[2]);
  Request soon = MakeRequest(1, seconds(2)), later = MakeRequest(2, seconds(8));
  soon.id = JobId(98);
  const auto plans = MakePlans(MakeSnapshot(3, jobs), {soon, later}, WithMinRuntime(seconds(3)));
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[0].steps.at(0).begin, Time{});
  for (const PlanStep& step : plans[1].steps)
    EXPECT_EQ(step.begin, kNow + milliseconds(2500)) << step.job.value();
}

TEST(GuardsTest, NotIfAnotherRequestNeedsTheDiskThatItWritesTo) {
  std::vector<JobView> jobs;
  for (int n = 0; n < 3; ++n) {
    jobs.push_back(MakeJob(n + 1, {n}, {n < 2 ? Method::kCheckpoint : Method::kSuspend}));
    jobs.back().memory = {Bytes{47 * kMiB}};  // 1 s
  }
  jobs[2] = Young(jobs[2]);
  Request soon = MakeRequest(1, seconds(10)), later = MakeRequest(2, seconds(20));
  soon.id = JobId(98);
  Snapshot snapshot = MakeSnapshot(3, jobs);
  for (NodeView& node : snapshot.nodes) node.local = {};
  const auto plans = MakePlans(snapshot, {soon, later}, WithMinRuntime(seconds(5)));
  ASSERT_EQ(plans.size(), 2u);
  for (const Plan& plan : plans) {
    ASSERT_TRUE(plan.feasible);
    for (const PlanStep& step : plan.steps) {
      if (step.method == Method::kCheckpoint) {
        EXPECT_LT(step.begin, kNow + seconds(2)) << step.job.value();
      }
    }
  }
}

TEST(GuardsTest, WhoTakesLongBeginsSoonerSoThatAllAreGoneTogether) {
  JobView saving = MakeJob(1, {0}, {Method::kApp});  // takes 5 s
  const Plan plan =
      PlanFor({saving, Young(MakeJob(2, {1}, {Method::kSuspend}))}, seconds(60), WithMinRuntime(seconds(10)));
  ASSERT_TRUE(plan.feasible);
  EXPECT_EQ(plan.steps.at(0).job, JobId(1));
  EXPECT_EQ(plan.steps.at(0).begin, kNow + milliseconds(4500));
  EXPECT_EQ(plan.predicted_start, kNow + milliseconds(9500));
}

TEST(GuardsTest, AKillIsNotPutOffAsItWouldLoseMore) {
  const Plan plan = PlanFor({MakeJob(1, {0}, {Method::kKill}), Young(MakeJob(2, {1}, {Method::kSuspend}))},
                            seconds(60), WithMinRuntime(seconds(10)));
  ASSERT_TRUE(plan.feasible);
  EXPECT_EQ(plan.steps.at(0).job, JobId(1));
  EXPECT_EQ(plan.steps.at(0).begin, Time{});
}

TEST(GuardsTest, APlanNamesThoseWhoseTimeItWaitsFor) {
  const Plan plan = PlanFor({MakeJob(1, {0}, {Method::kSuspend}), Young(MakeJob(2, {1}, {Method::kSuspend})),
                             Ending(MakeJob(3, {2}, {}), seconds(2))},
                            seconds(8), WithMinRuntime(seconds(3)));
  EXPECT_THAT(plan.awaited, ElementsAre(JobId(2), JobId(3)));
}

TEST(GuardsTest, ANodeIsFreeWhenItsDeadlineJobEnds) {
  const Plan plan = PlanFor({Ending(MakeJob(1, {0}, {}), seconds(6))}, seconds(60));
  ASSERT_TRUE(plan.feasible);
  EXPECT_THAT(plan.steps, IsEmpty());
  EXPECT_EQ(plan.predicted_start, kNow + seconds(6));
}

TEST(GuardsTest, ADeadlineJobThatEndsTooLateIsInTheWayUntilThen) {
  const Plan plan = PlanFor({Ending(MakeJob(1, {0}, {}), seconds(6))}, seconds(5));
  ASSERT_FALSE(plan.feasible);
  EXPECT_THAT(plan.refusal, HasSubstr("in the way: job 1 until 1970-01-12T13:46:46.000Z"));
  ASSERT_TRUE(plan.earliest);
  EXPECT_GE(*plan.earliest, kNow + seconds(6));
  EXPECT_LE(*plan.earliest, kNow + milliseconds(6100));
}

TEST(GuardsTest, ADeadlineJobThatDoesNotSayWhenItEndsIsInTheWayForGood) {
  JobView job = Ending(MakeJob(1, {0}, {}), seconds(6));
  job.ends_at.reset();
  const Plan plan = PlanFor({job}, seconds(60));
  EXPECT_FALSE(plan.feasible || plan.earliest);
  EXPECT_THAT(plan.refusal, HasSubstr("in the way: job 1 (is a deadline job itself, and does not say"));
}

TEST(GuardsTest, ARefusalNamesTheGuardedJobAndUntilWhen) {
  const Plan plan =
      PlanFor({Young(MakeJob(1, {0}, {Method::kSuspend}))}, seconds(2), WithMinRuntime(seconds(3)));
  ASSERT_FALSE(plan.feasible);
  EXPECT_THAT(plan.refusal, HasSubstr("in the way: job 1 until 1970-01-12T13:46:42.500Z"));
  EXPECT_THAT(plan.kept.at(0).reason, HasSubstr("less than the 3.00s that the policy asks for"));
}

TEST(GuardsTest, AndSaysItInFields) {
  const Plan plan =
      PlanFor({Young(MakeJob(1, {0}, {Method::kSuspend}))}, seconds(2), WithMinRuntime(seconds(3)));
  const PlanKeep& keep = plan.kept.at(0);
  EXPECT_EQ(keep.rule, KeepRule::kMinRuntime);
  EXPECT_EQ(keep.policy_key, "min_runtime");
  EXPECT_EQ(keep.job_class, "");
  EXPECT_EQ(keep.from, kNow + milliseconds(2500));
  EXPECT_EQ(keep.way, "suspend");
  EXPECT_EQ(keep.nodes, 1);
}

TEST(GuardsTest, AClassIsNamedWhereItsOwnValueDecides) {
  Policy policy = WithMinRuntime(seconds(3));
  policy.classes.resize(1);
  policy.classes[0].name = "vip";
  JobView job = Young(MakeJob(1, {0}, {Method::kSuspend}));
  job.job_class = 0;
  EXPECT_EQ(PlanFor({job}, seconds(2), policy).kept.at(0).job_class, "") << "the key for all jobs";
  policy.classes[0].min_runtime = seconds(3);
  EXPECT_EQ(PlanFor({job}, seconds(2), policy).kept.at(0).job_class, "vip");
}

TEST(GuardsTest, TheEarliestStartIsWhenTheGuardHasEnded) {
  const Plan plan =
      PlanFor({Young(MakeJob(1, {0}, {Method::kSuspend}))}, seconds(2), WithMinRuntime(seconds(3)));
  ASSERT_TRUE(plan.earliest);
  EXPECT_GE(*plan.earliest, kNow + milliseconds(2500));
  EXPECT_LE(*plan.earliest, kNow + milliseconds(2530));
}

TEST(GuardsTest, AJobThatWillHaveEndedIsNoVictim) {
  JobView job = MakeJob(1, {0}, {Method::kSuspend});
  job.ends_at = kNow + seconds(5);
  EXPECT_THAT(PlanFor({job}, seconds(6)).steps, IsEmpty());
  EXPECT_EQ(PlanFor({job}, seconds(4)).steps.size(), 1);
}

TEST(GuardsTest, OfAJobThatEndsByItselfAPlanSaysWhen) {
  JobView job = MakeJob(1, {0}, {Method::kSuspend});
  job.ends_at = kNow + seconds(5);
  EXPECT_EQ(PlanFor({job}, seconds(6)).kept.at(0).reason,
            "is waited for, until it ends by its walltime at 1970-01-12T13:46:45.000Z");
}

TEST(GuardsTest, AJobThatEndsTooLateAndCanMakeWayIsNotInTheWay) {
  JobView job = MakeJob(1, {0}, {Method::kSuspend});
  job.ends_at = kNow + minutes(5);
  const Plan plan = PlanFor({job, MakeJob(2, {1}, {})}, seconds(6));
  EXPECT_THAT(plan.refusal, HasSubstr("in the way: job 2 ("));
}

TEST(GuardsTest, AnotherJobMakesWayIfTheGuardEndsTooLate) {
  const Snapshot snapshot =
      MakeSnapshot(2, {MakeJob(1, {0}, {Method::kApp}), Young(MakeJob(2, {1}, {Method::kSuspend}))});
  const Plan plan = MakePlan(snapshot, MakeRequest(1, seconds(8)), WithMinRuntime(minutes(1)));
  ASSERT_TRUE(plan.feasible);
  EXPECT_EQ(plan.steps.at(0).job, JobId(1));
  EXPECT_THAT(plan.awaited, IsEmpty());
}

TEST(GuardsTest, SchedulersThatKnowNoLaterLeaveAGuardedJobAlone) {
  Policy policy = WithMinRuntime(seconds(3));
  policy.strategy = Strategy::kPbsOrder;
  EXPECT_FALSE(PlanFor({Young(MakeJob(1, {0}, {Method::kSuspend}))}, seconds(8), policy).feasible);
}

}  // namespace
}  // namespace siding::test
