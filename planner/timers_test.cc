// Jobs with timers, which run on while a job is suspended.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/planner.h"
#include "planner/small_cluster.h"

namespace siding::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

constexpr char kTimer[] = "process 12 (timeout) has a POSIX timer on CLOCK_REALTIME";

JobView Timed(JobView job) {
  job.timer = kTimer;
  return job;
}

// How the job leaves the nodes that it has to itself, all of which are wanted.
PlanStep StepFor(const JobView& job, Duration start_in = seconds(60), const Policy& policy = NoMargin()) {
  const int nodes = static_cast<int>(job.nodes.size());
  const Plan plan = MakePlan(MakeSnapshot(nodes, {job}), MakeRequest(nodes, start_in), policy);
  EXPECT_TRUE(plan.feasible) << plan.refusal;
  return plan.steps.empty() ? PlanStep() : plan.steps.front();
}

TEST(TimersTest, AJobWithATimerIsCheckpointedRatherThanSuspended) {
  const JobView job = MakeJob(1, {0}, {Method::kSuspend, Method::kCheckpoint, Method::kKill});
  EXPECT_EQ(StepFor(job).method, Method::kSuspend);
  EXPECT_EQ(StepFor(Timed(job)).method, Method::kCheckpoint);
}

TEST(TimersTest, ThePlanSaysWhy) {
  const JobView job = MakeJob(1, {0}, {Method::kSuspend, Method::kCheckpoint});
  EXPECT_THAT(StepFor(Timed(job)).reason,
              HasSubstr(std::string("; not suspended: ") + kTimer + ", which would run on"));
  EXPECT_THAT(StepFor(job).reason, Not(HasSubstr("suspended")));
}

TEST(TimersTest, OneThatIsNeverSuspendedNeedsNoReason) {
  EXPECT_THAT(StepFor(Timed(MakeJob(1, {0}, {Method::kCheckpoint}))).reason, Not(HasSubstr("timer")));
}

TEST(TimersTest, OneThatCannotBeCheckpointedIsSuspended) {
  const PlanStep step = StepFor(Timed(MakeJob(1, {0}, {Method::kSuspend, Method::kKill})));
  EXPECT_EQ(step.method, Method::kSuspend);
  EXPECT_THAT(step.reason, HasSubstr(std::string("; ") + kTimer + ", which runs on meanwhile"));
}

TEST(TimersTest, SoIsOneWhoseCheckpointWouldBeLate) {
  const JobView job = Timed(MakeJob(1, {0}, {Method::kSuspend, Method::kCheckpoint, Method::kKill}));
  EXPECT_EQ(StepFor(job, seconds(1)).method, Method::kSuspend);
}

// It has just begun, so that a kill loses less than a checkpoint takes.
TEST(TimersTest, NorIsAYoungOneKilledWhereItWouldHaveBeenSuspended) {
  JobView job = MakeJob(1, {0}, {Method::kSuspend, Method::kCheckpoint, Method::kKill});
  job.durable_at = MakeSnapshot(1, {}).now - std::chrono::milliseconds(500);
  ASSERT_EQ(StepFor(job).method, Method::kSuspend);
  EXPECT_EQ(StepFor(Timed(job)).method, Method::kCheckpoint);
  EXPECT_EQ(StepFor(Timed(job), seconds(1)).method, Method::kSuspend);
}

TEST(TimersTest, OneWithoutATimerMakesWayInstead) {
  const MethodSet methods = {Method::kSuspend, Method::kCheckpoint};
  const Snapshot snapshot = MakeSnapshot(2, {Timed(MakeJob(1, {0}, methods)), MakeJob(2, {1}, methods)});
  const Plan plan = MakePlan(snapshot, MakeRequest(1), NoMargin());
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps[0].job, JobId(2));
  EXPECT_EQ(plan.steps[0].method, Method::kSuspend);
  EXPECT_THAT(plan.kept.at(0).reason, HasSubstr("(checkpoint)"));
}

TEST(TimersTest, AStrictClassSuspendsInPlaceOfTheCheckpointThatIsLate) {
  Policy policy = NoMargin();
  policy.classes.resize(1);
  policy.classes[0].strict = true;
  policy.classes[0].methods = {Method::kSuspend, Method::kKill, Method::kCheckpoint};
  JobView job = Timed(MakeJob(1, {0}, {Method::kSuspend, Method::kCheckpoint, Method::kKill}));
  job.job_class = 0;
  job.memory = {Bytes{500 * kMiB}};  // 5.1 s; to kill it takes 2 s
  EXPECT_EQ(StepFor(job, seconds(3), policy).method, Method::kSuspend);
  EXPECT_EQ(StepFor(job, seconds(6), policy).method, Method::kCheckpoint);
}

}  // namespace
}  // namespace siding::test
