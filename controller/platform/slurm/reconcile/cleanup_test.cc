#include "controller/platform/slurm/reconcile/cleanup.h"

#include "controller/platform/slurm/client/fake_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::slurm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Held by its user and bound to a node, by siding unless `comment` says otherwise.
QueueJob& Bound(FakeClient& slurm, uint32_t number, const std::string& comment = "[siding pinned: x] note") {
  QueueJob& job = slurm.Add(number, JobPhase::kPending);
  job.held = true;
  job.priority = 0;
  job.only_on = {NodeId("a")};
  job.admin_comment = comment;
  return job;
}

TEST(CleanUp, TakesBackWhatSidingDid) {
  FakeClient slurm;
  const QueueJob& job = Bound(slurm, 1);
  ASSERT_TRUE(CleanUp(slurm, false).ok());
  EXPECT_THAT(job.only_on, IsEmpty());
  EXPECT_EQ(job.admin_comment, "note");
}

TEST(CleanUp, SaysWhatItDid) {
  FakeClient slurm;
  Bound(slurm, 1);
  const auto steps = CleanUp(slurm, false);
  ASSERT_EQ(steps->size(), 1u);
  EXPECT_EQ(steps->front().step.target, "job 1");
  EXPECT_THAT(steps->front().step.actions, ElementsAre("free to run on any node", "mark removed"));
}

TEST(CleanUp, LeavesWhatOthersDid) {
  FakeClient slurm;
  Bound(slurm, 1, "");
  Bound(slurm, 2, "siding is to keep off");
  slurm.reservations["maintenance"].name = "maintenance";
  EXPECT_THAT(*CleanUp(slurm, false), IsEmpty());
  EXPECT_EQ(slurm.orders, 0);
}

TEST(CleanUp, SetsANiceValueBack) {
  FakeClient slurm;
  QueueJob& job = slurm.Add(1, JobPhase::kPending);
  job.priority = 1001;
  job.nice = -1;
  job.admin_comment = "[siding nice=0/-1: makes way for job 42]";
  ASSERT_TRUE(CleanUp(slurm, false).ok());
  EXPECT_EQ(job.nice, 0);
  EXPECT_EQ(job.admin_comment, "");
}

TEST(CleanUp, LeavesAHold) {
  FakeClient slurm;
  const QueueJob& job = Bound(slurm, 1);
  ASSERT_TRUE(CleanUp(slurm, false).ok());
  EXPECT_TRUE(job.held);
}

TEST(CleanUp, DeletesReservationsAfterTheJobsHaveLeftThem) {
  FakeClient slurm;
  slurm.reservations["siding-7"].name = "siding-7";
  QueueJob& job = slurm.Add(1, JobPhase::kPending);
  job.reservation = "siding-7";
  ASSERT_TRUE(CleanUp(slurm, false).ok());
  EXPECT_EQ(job.reservation, "");
  EXPECT_THAT(slurm.reservations, IsEmpty());
}

TEST(CleanUp, SaysWhichReservationARunningJobKeeps) {
  FakeClient slurm;
  slurm.reservations["siding-7"].name = "siding-7";
  slurm.Add(1, JobPhase::kRunning).reservation = "siding-7";
  const auto steps = CleanUp(slurm, false);
  ASSERT_EQ(steps->size(), 1u);
  EXPECT_TRUE(absl::IsFailedPrecondition(steps->front().status));
}

TEST(CleanUp, OnATrialRunNothingIsDone) {
  FakeClient slurm;
  Bound(slurm, 1);
  slurm.reservations["siding-7"].name = "siding-7";
  EXPECT_EQ(CleanUp(slurm, true)->size(), 2u);
  EXPECT_EQ(slurm.orders, 0);
}

TEST(CleanUp, ASecondTimeFindsNothing) {
  FakeClient slurm;
  Bound(slurm, 1);
  slurm.reservations["siding-7"].name = "siding-7";
  ASSERT_TRUE(CleanUp(slurm, false).ok());
  EXPECT_THAT(*CleanUp(slurm, false), IsEmpty());
}

TEST(CleanUp, EndedJobsAreLeftAlone) {
  FakeClient slurm;
  Bound(slurm, 1).phase = JobPhase::kEnded;
  EXPECT_THAT(*CleanUp(slurm, false), IsEmpty());
}

TEST(CleanUp, ARunningJobOnlyLosesItsMark) {
  FakeClient slurm;
  QueueJob& job = Bound(slurm, 1);
  job.phase = JobPhase::kRunning;
  job.held = false;
  EXPECT_THAT(CleanUp(slurm, false)->front().step.actions, ElementsAre("mark removed"));
  EXPECT_THAT(job.only_on, ElementsAre(NodeId("a")));
}

TEST(CleanUp, WithoutSlurmItIsAnError) {
  FakeClient slurm;
  slurm.health = absl::UnavailableError("connect failure");
  EXPECT_TRUE(absl::IsUnavailable(CleanUp(slurm, false).status()));
}

}  // namespace
}  // namespace siding::slurm
