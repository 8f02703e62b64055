// Jobs that are told some time before they are frozen or dumped.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/planner.h"
#include "planner/small_cluster.h"

namespace siding::test {
namespace {

using std::chrono::seconds;

JobView Told(JobView job, Duration notice = seconds(20)) {
  job.notice = notice;
  return job;
}

Duration ReleaseOf(const JobView& job) {
  const Plan plan = MakePlan(MakeSnapshot(1, {job}), MakeRequest(1), NoMargin());
  return plan.feasible ? plan.steps.at(0).predicted_release - kNow : Duration(-1);
}

TEST(NoticeTest, AJobIsFrozenThatMuchLater) {
  EXPECT_EQ(ReleaseOf(Told(MakeJob(1, {0}, {Method::kSuspend}))), seconds(20));
}

TEST(NoticeTest, AJobIsDumpedThatMuchLater) {
  const JobView job = MakeJob(1, {0}, {Method::kCheckpoint});
  EXPECT_EQ(ReleaseOf(Told(job)) - ReleaseOf(job), seconds(20));
}

TEST(NoticeTest, ASaveAndAKillHaveTheirOwnGrace) {
  for (const Method method : {Method::kApp, Method::kKill}) {
    const JobView job = MakeJob(1, {0}, {method});
    EXPECT_EQ(ReleaseOf(Told(job)), ReleaseOf(job));
  }
}

TEST(NoticeTest, AJobThatLeavesThroughRamIsDrainedThatMuchLater) {
  JobView job = Told(MakeJob(1, {0}, {Method::kCheckpoint}));
  job.per_node.gpus = 1;
  job.gpu_memory = {Bytes{100 * kMiB}};
  Snapshot snapshot = MakeSnapshot(1, {job});
  snapshot.nodes[0].capacity.gpus = 1;
  snapshot.nodes[0].gpu = {{100.0 * kMiB, seconds(0)}, {200.0 * kMiB, seconds(0)}};
  const Plan plan = MakePlan(snapshot, MakeRequest(1, seconds(21)), NoMargin());
  ASSERT_TRUE(plan.feasible);
  EXPECT_TRUE(plan.steps.at(0).through_ram);
  EXPECT_EQ(plan.steps.at(0).predicted_release, kNow + seconds(21));
}

TEST(NoticeTest, AJobWithAnEarlyImageIsToldWhenTheRequestArrives) {
  Snapshot snapshot = MakeSnapshot(1, {Told(MakeJob(1, {0}, {Method::kCheckpoint}), seconds(1))});
  Request request = MakeRequest(1);
  request.not_before = kNow + seconds(57);  // the image alone takes 1.1 s, so 3 s would do; 2 s is the grace
  snapshot.nodes[0].local.dump = snapshot.nodes[0].shared.dump = {50.0 * kMiB, seconds(5)};
  const Plan plan = MakePlan(snapshot, request, NoMargin());
  ASSERT_TRUE(plan.feasible);
  EXPECT_TRUE(plan.steps.at(0).early);
  EXPECT_EQ(plan.steps.at(1).predicted_release, request.not_before + seconds(3));
}

TEST(NoticeTest, AnEarlyImageItselfNeedsNone) {
  Snapshot snapshot = MakeSnapshot(1, {Told(MakeJob(1, {0}, {Method::kCheckpoint}), seconds(8))});
  snapshot.nodes[0].local = {};
  snapshot.nodes[0].shared.dump = {50.0 * kMiB, seconds(8)};  // 10 s
  Request request = MakeRequest(1, seconds(23));
  request.not_before = kNow + seconds(12);
  const Plan plan = MakePlan(snapshot, request, NoMargin());
  ASSERT_TRUE(plan.feasible);
  EXPECT_EQ(plan.steps.at(0).predicted_release, plan.steps.at(0).begin + seconds(10));
}

TEST(NoticeTest, WhereItIsTooLongTheJobStays) {
  const Plan plan = MakePlan(MakeSnapshot(1, {Told(MakeJob(1, {0}, {Method::kSuspend}), seconds(61))}),
                             MakeRequest(1), NoMargin());
  EXPECT_FALSE(plan.feasible);
  ASSERT_TRUE(plan.earliest);
  EXPECT_GE(*plan.earliest, kNow + seconds(61));
}

TEST(NoticeTest, WhereItIsTooLongAnotherMakesWay) {
  const Plan plan = MakePlan(MakeSnapshot(2, {Told(MakeJob(1, {0}, {Method::kSuspend}), seconds(61)),
                                              MakeJob(2, {1}, {Method::kKill})}),
                             MakeRequest(1), NoMargin());
  ASSERT_TRUE(plan.feasible);
  EXPECT_EQ(plan.steps.at(0).job, JobId(2));
}

// Ten images of 100 MiB at 100 MiB/s, after 30 s of notice.
Plan TenToSharedStorage(Duration within, int told = 10) {
  std::vector<JobView> jobs;
  for (int i = 0; i < 10; ++i)
    jobs.push_back(Told(MakeJob(i + 1, {i}, {Method::kCheckpoint}), i < told ? seconds(30) : seconds(0)));
  Snapshot snapshot = MakeSnapshot(10, std::move(jobs));
  for (NodeView& node : snapshot.nodes) node.local = {};
  return MakePlan(snapshot, MakeRequest(10, within), NoMargin());
}

TEST(NoticeTest, NothingIsWrittenToSharedStorageBeforeItIsOver) {
  const Plan plan = TenToSharedStorage(seconds(39));
  EXPECT_FALSE(plan.feasible);
  ASSERT_TRUE(plan.earliest);
  EXPECT_NEAR(ToSeconds(*plan.earliest - kNow), 40, 0.5);
}

TEST(NoticeTest, WhatFollowsItIsWrittenOneAfterAnother) {
  const Plan plan = TenToSharedStorage(seconds(41));
  ASSERT_TRUE(plan.feasible);
  EXPECT_EQ(plan.predicted_start, kNow + seconds(40));
}

TEST(NoticeTest, OthersWriteMeanwhile) { EXPECT_TRUE(TenToSharedStorage(seconds(36), 5).feasible); }

// Two on one node, over its own way to shared storage.
TEST(NoticeTest, NothingIsWrittenByItsNodeBeforeItIsOver) {
  const auto plan = [](Duration within) {
    Snapshot snapshot = MakeSnapshot(
        1, {Told(MakeJob(1, {0}, {Method::kCheckpoint})), Told(MakeJob(2, {0}, {Method::kCheckpoint}))});
    snapshot.nodes[0].capacity.slots = 2;
    snapshot.nodes[0].local = {};
    Request request = MakeRequest(1, within);
    request.per_node.slots = 2;
    return MakePlan(snapshot, request, NoMargin());
  };
  EXPECT_FALSE(plan(seconds(23)).feasible);
  EXPECT_TRUE(plan(seconds(45)).feasible);
}

}  // namespace
}  // namespace siding::test
