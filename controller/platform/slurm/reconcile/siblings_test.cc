#include "controller/platform/slurm/reconcile/siblings.h"

#include "controller/platform/slurm/client/fake_client.h"
#include "gtest/gtest.h"

namespace siding::slurm {
namespace {

constexpr uint32_t kPriority = 1000;
const JobNumber kArray(10);

class SiblingsTest : public testing::Test {
 protected:
  SiblingsTest() {
    Sibling(10).array_tasks = "2-9%2";
    desired.jobs[JobId(11)].before_siblings = true;
  }
  QueueJob& Sibling(uint32_t number) {
    QueueJob& job = slurm.Add(number, JobPhase::kPending);
    job.array = kArray;
    job.priority = kPriority;
    return job;
  }
  std::optional<int64_t> Nice(int64_t own, int64_t priority, int64_t by_age = 0) {
    return Siblings(desired, **slurm.Jobs(), by_age).NiceBefore(kArray, own, priority, 0);
  }

  FakeClient slurm;
  DesiredState desired;
};

TEST_F(SiblingsTest, OneLessIsEnoughForEqualPriorities) { EXPECT_EQ(Nice(0, kPriority), -1); }

TEST_F(SiblingsTest, WhoIsBeforeThemAnywayNeedsNone) { EXPECT_FALSE(Nice(0, kPriority + 1)); }

TEST_F(SiblingsTest, WhatTheyGainedByWaitingIsMadeUpFor) {
  EXPECT_EQ(Nice(0, kPriority - 20, 100), -21);
  EXPECT_FALSE(Nice(0, kPriority - 200, 100));
}

TEST_F(SiblingsTest, ANiceValueOfItsUsersIsReckonedFrom) {
  slurm.jobs.at(kArray).nice = 50;
  EXPECT_EQ(Nice(50, kPriority), 49);
}

// Its user has put it behind the others, or them before it.
TEST_F(SiblingsTest, OthersOfAnotherNiceValueStayWhereTheyAre) { EXPECT_FALSE(Nice(50, kPriority)); }

TEST_F(SiblingsTest, OnePutBeforeAllByHandIsNotOvertaken) {
  Sibling(12).priority = 4'000'000'000;
  EXPECT_EQ(Nice(0, kPriority), -1);
}

TEST_F(SiblingsTest, TwoThatComeBackDoNotOutdoEachOther) {
  slurm.jobs.clear();
  Sibling(12).admin_comment = "[siding nice=0/-1: makes way for job 50]";
  Sibling(13);
  desired.jobs[JobId(13)].before_siblings = true;
  EXPECT_FALSE(Nice(0, kPriority));
}

TEST_F(SiblingsTest, WhoRunsOrIsHeldIsInNobodysWay) {
  slurm.jobs.at(kArray).phase = JobPhase::kRunning;
  Sibling(12).priority = 0;
  EXPECT_FALSE(Nice(0, kPriority));
  EXPECT_FALSE(Nice(0, 0));
}

TEST_F(SiblingsTest, AnotherArrayIsNone) {
  slurm.jobs.at(kArray).array = JobNumber(11);
  EXPECT_FALSE(Nice(0, kPriority));
}

TEST_F(SiblingsTest, SlurmsRangeOfNiceValuesIsNotLeft) {
  slurm.jobs.at(kArray).priority = 4'000'000'000;
  EXPECT_FALSE(Nice(0, 1, 4'000'000'000));
}

}  // namespace
}  // namespace siding::slurm
