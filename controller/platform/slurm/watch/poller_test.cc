#include "controller/platform/slurm/watch/poller.h"

#include "controller/platform/slurm/client/fake_client.h"
#include "gtest/gtest.h"

namespace siding::slurm {
namespace {

TEST(Poller, AtFirstEverythingIsNew) {
  FakeClient slurm;
  slurm.Add(1, JobPhase::kRunning);
  slurm.nodes[NodeId("a")].id = NodeId("a");
  Poller poller(slurm);
  const auto changes = poller.Poll();
  EXPECT_EQ(changes->jobs.size(), 1u);
  EXPECT_EQ(changes->nodes.size(), 1u);
}

TEST(Poller, ThenOnlyWhatHasChanged) {
  FakeClient slurm;
  slurm.Add(1, JobPhase::kRunning);
  slurm.Add(2, JobPhase::kRunning);
  Poller poller(slurm);
  ASSERT_TRUE(poller.Poll().ok());
  ASSERT_TRUE(slurm.Do(JobNumber(2), Verb::kSuspend).ok());
  const auto changes = poller.Poll();
  ASSERT_EQ(changes->jobs.size(), 1u);
  EXPECT_EQ(changes->jobs.front().after->phase, JobPhase::kSuspended);
  EXPECT_TRUE(poller.Poll()->empty());
}

TEST(Poller, ASlurmThatDoesNotAnswerHasNotLostItsJobs) {
  FakeClient slurm;
  slurm.Add(1, JobPhase::kRunning);
  Poller poller(slurm);
  ASSERT_TRUE(poller.Poll().ok());
  slurm.health = absl::UnavailableError("connect failure");
  EXPECT_FALSE(poller.Poll().ok());
  slurm.health = absl::OkStatus();
  EXPECT_TRUE(poller.Poll()->empty());
}

TEST(Poller, AReservationIsSeenByTheNextPoll) {
  FakeClient slurm;
  Poller poller(slurm);
  ASSERT_TRUE(poller.Poll().ok());
  const auto before = poller.reservations();
  slurm.reservations["x"].name = "x";
  EXPECT_TRUE(poller.Poll()->empty());
  EXPECT_NE(poller.reservations(), before);
  EXPECT_EQ(poller.reservations()->size(), 1u);
}

}  // namespace
}  // namespace siding::slurm
