#include "controller/engine/state/job_index.h"

#include "controller/engine/state/cluster_state.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

class JobIndexTest : public testing::Test {
 protected:
  JobIndexTest() { job_.id = JobId(7); }
  void Become(JobState state, std::vector<NodeId> nodes = {}) {
    job_.state = state;
    job_.nodes = std::move(nodes);
    index_.Update(job_);
  }
  const NodeId a_{"a"}, b_{"b"};
  JobRecord job_;
  JobIndex index_;
};

TEST_F(JobIndexTest, AJobThatHoldsNoNodesWaits) {
  Become(JobState::kPending);
  EXPECT_THAT(index_.waiting(), SizeIs(1));
  EXPECT_THAT(index_.unsettled(), IsEmpty());
}

TEST_F(JobIndexTest, ARunningJobIsOnlyKnownByItsNodes) {
  Become(JobState::kPending);
  Become(JobState::kRunning, {a_});
  EXPECT_THAT(index_.waiting(), IsEmpty());
  EXPECT_THAT(index_.unsettled(), IsEmpty());
  EXPECT_THAT(index_.On(a_), ElementsAre(Pair(JobId(7), 0)));
}

TEST_F(JobIndexTest, AJobCountsAsItsUsersUntilItHasEnded) {
  job_.spec.uid = 1000;
  Become(JobState::kPending);
  Become(JobState::kRunning, {a_});
  EXPECT_EQ(index_.CountOf(1000), 1u);
  EXPECT_EQ(index_.CountOf(1001), 0u);
  Become(JobState::kDone);
  EXPECT_EQ(index_.CountOf(1000), 0u);
}

TEST_F(JobIndexTest, AJobOnItsWayOffItsNodesIsUnsettled) {
  Become(JobState::kDumping, {a_});
  EXPECT_THAT(index_.unsettled(), SizeIs(1));
}

TEST_F(JobIndexTest, AGangIsOnEachOfItsNodes) {
  Become(JobState::kRunning, {a_, b_, a_});
  EXPECT_THAT(index_.On(a_), ElementsAre(Pair(JobId(7), 0), Pair(JobId(7), 2)));
  EXPECT_THAT(index_.On(b_), ElementsAre(Pair(JobId(7), 1)));
}

TEST_F(JobIndexTest, AJobThatCameBackElsewhereHasLeftItsNodes) {
  Become(JobState::kRunning, {a_});
  Become(JobState::kParked);
  Become(JobState::kRestoring, {b_});
  EXPECT_THAT(index_.On(a_), IsEmpty());
  EXPECT_THAT(index_.On(b_), SizeIs(1));
}

TEST_F(JobIndexTest, OnlyDeadlineJobsAreRequests) {
  Become(JobState::kPending);
  EXPECT_THAT(index_.requests(), IsEmpty());
  job_.spec.kind = JobKind::kOnDemand;
  Become(JobState::kPending);
  EXPECT_THAT(index_.requests(), SizeIs(1));
}

TEST_F(JobIndexTest, AJobThatHasEndedIsNowhere) {
  job_.spec.kind = JobKind::kOnDemand;
  Become(JobState::kRunning, {a_});
  Become(JobState::kDone);
  EXPECT_THAT(index_.requests(), IsEmpty());
  EXPECT_THAT(index_.waiting(), IsEmpty());
  EXPECT_THAT(index_.On(a_), IsEmpty());
}

}  // namespace
}  // namespace siding
