#include "controller/manager/outlook.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::HasSubstr;

const Time kThen{std::chrono::seconds(1000)};

JobRecord WithPlan(const Plan& plan) {
  JobRecord job;
  job.spec.kind = JobKind::kOnDemand;
  job.plans = {plan};
  return job;
}

TEST(OutlookTest, ThatAPodCannotBeServedIsAWarning) {
  Plan plan;
  EXPECT_TRUE(IsWarning({.body = RequestPlanned{plan}}));
  plan.feasible = true;
  EXPECT_FALSE(IsWarning({.body = RequestPlanned{plan}}));
}
TEST(OutlookTest, NothingIsSaidOfWhatWasNotPlannedFor) {
  EXPECT_FALSE(OutlookOf(JobRecord()));
  JobRecord job = WithPlan({});
  job.plans.clear();
  EXPECT_FALSE(OutlookOf(job));
}
TEST(OutlookTest, AJobWithAPlan) {
  const auto outlook =
      OutlookOf(WithPlan({.feasible = true, .nodes = {NodeId("n1")}, .predicted_start = kThen}));
  ASSERT_TRUE(outlook);
  EXPECT_TRUE(outlook->planned);
  EXPECT_FALSE(outlook->refused);
  EXPECT_THAT(outlook->text, HasSubstr("will get n1"));
  EXPECT_EQ(outlook->predicted, kThen);
}
TEST(OutlookTest, AJobThatWaitsItsTurn) {
  const auto outlook = OutlookOf(WithPlan({.queued = true, .refusal = "too late"}));
  ASSERT_TRUE(outlook);
  EXPECT_FALSE(outlook->planned);
  EXPECT_FALSE(outlook->refused);
  EXPECT_THAT(outlook->text, HasSubstr("too late"));
}
TEST(OutlookTest, AJobThatIsRefused) {
  JobRecord job = WithPlan({.refusal = "no node can be free", .earliest = kThen});
  job.state = JobState::kFailed;
  const auto outlook = OutlookOf(job);
  ASSERT_TRUE(outlook);
  EXPECT_TRUE(outlook->refused);
  EXPECT_EQ(outlook->text, "no node can be free");
  EXPECT_EQ(outlook->earliest, kThen);
}
TEST(OutlookTest, AJobThatRanAndFailedWasNotRefused) {
  JobRecord job = WithPlan({});
  job.state = JobState::kFailed;
  job.first_started = kThen;
  EXPECT_FALSE(OutlookOf(job)->refused);
}

class CheckpointsOfTest : public testing::Test {
 protected:
  CheckpointsOfTest() {
    JobRecord& job = state_.jobs[JobId(7)];
    job.id = JobId(7);
    job.spec.cluster_manager = kKubernetes;
    job.spec.labels = {{"pod", "d/train-abc"}, {"owner", "Job/train"}, {"owner-uid", "u"}};
    CheckpointRecord& image = state_.checkpoints[CheckpointId("kubernetes-7.1")];
    image.id = CheckpointId("kubernetes-7.1");
    image.job = JobId(7);
    image.nodes = {NodeId("n1")};
    image.bytes = Bytes{5};
    image.created = kThen;
    image.state = CheckpointState::kGood;
  }
  JobRecord& job() { return state_.jobs.at(JobId(7)); }
  CheckpointRecord& image() { return state_.checkpoints.at(CheckpointId("kubernetes-7.1")); }
  DurableState state_;
};

TEST_F(CheckpointsOfTest, AnImageOfAPodsJob) {
  const auto views = CheckpointsOf(state_);
  ASSERT_EQ(views.size(), 1);
  EXPECT_EQ(views[0].id, CheckpointId("kubernetes-7.1"));
  EXPECT_EQ(views[0].job, JobId(7));
  EXPECT_EQ(views[0].pod, (kubernetes::ObjectName{"d", "train-abc"}));
  EXPECT_EQ(views[0].owner, (kubernetes::Owner{"Job", "train", "u"}));
  EXPECT_EQ(views[0].phase, kubernetes::CheckpointPhase::kDurable);
  EXPECT_EQ(views[0].bytes, Bytes{5});
  EXPECT_EQ(views[0].made, kThen);
  EXPECT_FALSE(views[0].job_ended);
}
TEST_F(CheckpointsOfTest, WhatIsNotInTheStoreIsNotSeen) {
  for (const CheckpointState state : {CheckpointState::kFailed, CheckpointState::kGone}) {
    image().state = state;
    EXPECT_TRUE(CheckpointsOf(state_).empty());
  }
}
TEST_F(CheckpointsOfTest, OthersJobsAreNoPods) {
  job().spec.cluster_manager = "";
  EXPECT_TRUE(CheckpointsOf(state_).empty());
}
TEST_F(CheckpointsOfTest, AnImageOfAJobThatIsForgottenIsNotSeen) {
  state_.jobs.clear();
  EXPECT_TRUE(CheckpointsOf(state_).empty());
}
TEST_F(CheckpointsOfTest, AJobThatHasEnded) {
  job().ended = kThen;
  EXPECT_TRUE(CheckpointsOf(state_).at(0).job_ended);
}

class PreemptionInTest : public testing::Test {
 protected:
  PreemptionInTest() {
    JobRecord& request = state_.jobs[JobId(9)];
    request = WithPlan({.feasible = true,
                        .steps = {{.job = JobId(7), .early = true, .loss_node_seconds = 1},
                                  {.job = JobId(7), .loss_node_seconds = 12}}});
    request.spec.start_by = kThen;
  }
  static Event Ordered(JobEvent how, JobId request = JobId(9), bool keep_running = false) {
    JobMoved moved{.event = how};
    moved.request = request;
    moved.keep_running = keep_running;
    return {.job = JobId(7), .body = moved};
  }
  DurableState state_;
};

TEST_F(PreemptionInTest, AnOrderForARequestHasItsDeadlineAndTheLossAsPlanned) {
  for (const JobEvent how :
       {JobEvent::kOrderDump, JobEvent::kOrderSuspend, JobEvent::kOrderSave, JobEvent::kOrderKill}) {
    const auto preemption = PreemptionIn(Ordered(how), state_);
    ASSERT_TRUE(preemption);
    EXPECT_EQ(preemption->by, JobId(9));
    EXPECT_EQ(preemption->deadline, kThen);
    EXPECT_EQ(preemption->lost_node_seconds, 12);
  }
}
TEST_F(PreemptionInTest, TheLossIsThatOfThePlanThatTheJobWasIn) {
  state_.jobs[JobId(9)].plans.emplace_back();
  EXPECT_EQ(PreemptionIn(Ordered(JobEvent::kOrderKill), state_)->lost_node_seconds, 12);
}
TEST_F(PreemptionInTest, ACheckpointAfterWhichItRunsOnIsNone) {
  EXPECT_FALSE(PreemptionIn(Ordered(JobEvent::kOrderDump, JobId(9), true), state_));
}
TEST_F(PreemptionInTest, WhatNobodyGainsFromIsNone) {
  EXPECT_FALSE(PreemptionIn(Ordered(JobEvent::kOrderDump, JobId(0)), state_));
  EXPECT_FALSE(PreemptionIn(Ordered(JobEvent::kReleased), state_));
}
TEST_F(PreemptionInTest, IsOneLineOfOneForm) {
  EXPECT_EQ(
      Describe(Preemption{JobId(9), kThen, 12}, "default/steer (UID u)"),
      "preempted by default/steer (UID u) for deadline " + FormatTime(kThen) + ": 12.0 node-seconds lost");
}

}  // namespace
}  // namespace siding
