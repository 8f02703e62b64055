#include "controller/engine/observe/stragglers.h"

#include "controller/engine/state/predicates.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

class StragglersTest : public testing::Test {
 protected:
  StragglersTest() {
    job_.id = JobId(1);
    job_.spec.nodes = 3;
    job_.incarnation = 1;
    job_.order = job_.ordered_as = 5;
    job_.nodes = {NodeId("a"), NodeId("b"), NodeId("c")};
    job_.current.keep_running = true;
    Enter(JobState::kDumping);
  }
  void Enter(JobState state) {
    job_.state = state;
    Look();
  }
  void Look() {
    state_.jobs.insert_or_assign(job_.id, job_);
    stragglers_.Note(job_);
  }
  v1::TaskReport& Known(int rank) {
    v1::TaskReport& known = state_.observed_tasks[job_.nodes[rank]][ClusterView::TaskOf(job_, rank)].report;
    *known.mutable_task() = ToRef(ClusterView::TaskOf(job_, rank));
    return known;
  }
  // Whether that needs no look.
  bool Says(int rank, v1::TaskReport report) {
    *report.mutable_task() = Known(rank).task();
    const bool behind = stragglers_.AreBehind(job_.nodes[rank], Known(rank), report);
    Known(rank) = report;
    return behind;
  }
  static v1::TaskRef ToRef(const TaskId& id) {
    v1::TaskRef ref;
    ref.set_job(id.job.value());
    ref.set_incarnation(id.incarnation);
    ref.set_rank(id.rank);
    return ref;
  }
  v1::TaskReport At(v1::TaskPhase phase, v1::DumpBarrier barrier = v1::BARRIER_NONE) const {
    v1::TaskReport report;
    report.set_phase(phase);
    report.set_op(OpOf(job_));
    report.set_barrier(barrier);
    return report;
  }
  v1::TaskReport Counted(v1::TaskPhase phase, v1::DumpBarrier barrier = v1::BARRIER_NONE) const {
    v1::TaskReport report = At(phase, barrier);
    report.set_committed_op(OpOf(job_));
    return report;
  }
  static v1::TaskReport Running() {
    v1::TaskReport report;
    report.set_phase(v1::RUNNING);
    return report;
  }

  JobRecord job_;
  ClusterState state_;
  ClusterView cluster_{state_};
  Stragglers stragglers_{state_, cluster_};
};

TEST_F(StragglersTest, OnlyTheLastOneAtABarrierMatters) {
  EXPECT_TRUE(Says(0, At(v1::DUMPING, v1::BARRIER_STOP)));
  EXPECT_TRUE(Says(1, At(v1::DUMPING, v1::BARRIER_STOP)));
  EXPECT_FALSE(Says(2, At(v1::DUMPING, v1::BARRIER_STOP)));
}

TEST_F(StragglersTest, OneThatIsAheadAlreadyIsNotCountedTwice) {
  EXPECT_TRUE(Says(0, At(v1::DUMPING, v1::BARRIER_STOP)));
  EXPECT_TRUE(Says(0, At(v1::DUMPING, v1::BARRIER_HOLD)));
  EXPECT_TRUE(Says(0, At(v1::PREPARED)));
  EXPECT_TRUE(Says(1, At(v1::DUMPING)));
  EXPECT_FALSE(Says(2, At(v1::DUMPING)));
}

TEST_F(StragglersTest, EachLookBeginsAtThoseWhoAreLastThen) {
  for (int rank = 0; rank < 3; ++rank) Says(rank, At(v1::DUMPING, v1::BARRIER_STOP));
  Look();
  EXPECT_TRUE(Says(1, At(v1::DUMPING, v1::BARRIER_HOLD)));
  Look();
  EXPECT_TRUE(Says(0, At(v1::DUMPING, v1::BARRIER_HOLD)));
  EXPECT_FALSE(Says(2, At(v1::DUMPING, v1::BARRIER_HOLD)));
}

TEST_F(StragglersTest, WhatFailsMatters) {
  v1::TaskReport failed = Running();
  failed.set_failed_op(OpOf(job_));
  Says(0, At(v1::DUMPING, v1::BARRIER_STOP));
  EXPECT_FALSE(Says(0, failed));
  v1::TaskReport again = At(v1::DUMPING);
  again.set_failed_op(OpOf(job_));
  EXPECT_FALSE(Says(1, again)) << "it has failed meanwhile";
}

TEST_F(StragglersTest, SoDoesTheEndOfARank) {
  Says(0, At(v1::PREPARED));
  EXPECT_FALSE(Says(0, Counted(v1::EXITED)));
  EXPECT_FALSE(Says(1, At(v1::LOST)));
}

TEST_F(StragglersTest, OneOfAnotherOrderIsNotAhead) {
  v1::TaskReport earlier = At(v1::DUMPING, v1::BARRIER_STOP);
  earlier.set_op(OpOf(job_) - 1);
  EXPECT_FALSE(Says(0, earlier));
}

TEST_F(StragglersTest, ThoseThatRunOnHaveCommittedLast) {
  for (int rank = 0; rank < 3; ++rank) Says(rank, At(v1::PREPARED));
  Enter(JobState::kCommitting);
  EXPECT_TRUE(Says(0, Counted(v1::PREPARED)));
  EXPECT_TRUE(Says(0, Counted(v1::RUNNING)));
  EXPECT_TRUE(Says(1, Counted(v1::RUNNING)));
  EXPECT_FALSE(Says(2, Counted(v1::RUNNING)));
}

TEST_F(StragglersTest, ThoseThatLeaveAreGoneLast) {
  job_.current.keep_running = false;
  for (int rank = 0; rank < 3; ++rank) Says(rank, At(v1::PREPARED));
  Enter(JobState::kCommitting);
  EXPECT_TRUE(Says(0, Counted(v1::PREPARED, v1::BARRIER_LEAVE)));
  EXPECT_TRUE(Says(1, Counted(v1::PREPARED, v1::BARRIER_LEAVE)));
  EXPECT_FALSE(Says(2, Counted(v1::PREPARED, v1::BARRIER_LEAVE)));
  Look();
  EXPECT_TRUE(Says(0, Counted(v1::CHECKPOINTED)));
  EXPECT_FALSE(Says(1, Counted(v1::RUNNING))) << "its agent has died, and it runs";
}

TEST_F(StragglersTest, OfAStartTheLastThatHasANetworkAndTheLastThatIsJoinedMatter) {
  Enter(JobState::kStarting);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(Says(rank, At(v1::LAUNCHING)), rank < 2);
  }
  Look();
  v1::TaskReport runs = Running();
  runs.mutable_endpoint()->set_vni(1);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(Says(rank, runs), rank < 2);
  }
  Look();
  runs.set_not_joined("no such device");
  EXPECT_FALSE(Says(0, runs));
}

TEST_F(StragglersTest, OfAJobThatIsNotOnItsWayEachReportMatters) {
  Enter(JobState::kRunning);
  EXPECT_FALSE(Says(0, Running()));
}

TEST_F(StragglersTest, SoDoesOneOfANodeThatTheJobIsNotOn) {
  v1::TaskReport report = At(v1::DUMPING);
  *report.mutable_task() = ToRef(ClusterView::TaskOf(job_, 0));
  EXPECT_FALSE(stragglers_.AreBehind(NodeId("d"), v1::TaskReport(), report));
}

}  // namespace
}  // namespace siding
