#include "controller/platform/slurm/steering.h"

#include "controller/platform/slurm/fake_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::slurm {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class SteeringTest : public testing::Test {
 protected:
  std::vector<StepTaken> Turn(bool changed = false) {
    const absl::Status health = std::exchange(slurm.health, absl::OkStatus());
    const auto jobs = *slurm.Jobs();
    slurm.health = health;
    return steering.Turn(*jobs, changed, now);
  }
  void WantHeld(uint32_t job) {
    Wishes wishes;
    wishes.jobs[JobNumber(job)] = {true, {}, "makes way"};
    steering.Want(wishes);
  }

  FakeClient slurm;
  Steering steering{slurm};
  Time now = FromMicros(1);
};

TEST_F(SteeringTest, BeforeTheFirstWishesNothingIsTakenBack) {
  slurm.reservations["siding-7"].name = "siding-7";
  EXPECT_THAT(Turn(true), IsEmpty());
  EXPECT_THAT(slurm.reservations, SizeIs(1));
}

TEST_F(SteeringTest, NoWishesTakeEverythingBack) {
  slurm.reservations["siding-7"].name = "siding-7";
  steering.Want({});
  EXPECT_THAT(Turn(), SizeIs(1));
  EXPECT_THAT(slurm.reservations, IsEmpty());
}

TEST_F(SteeringTest, NewWishesAreTakenUpAtOnce) {
  const QueueJob& job = slurm.Add(1, JobPhase::kPending);
  WantHeld(1);
  EXPECT_THAT(Turn(), SizeIs(1));
  EXPECT_TRUE(job.held);
}

TEST_F(SteeringTest, AWishComesTrueWhenTheJobIsThere) {
  WantHeld(1);
  EXPECT_THAT(Turn(), IsEmpty());
  const QueueJob& job = slurm.Add(1, JobPhase::kPending);
  EXPECT_THAT(Turn(true), SizeIs(1));
  EXPECT_TRUE(job.held);
}

TEST_F(SteeringTest, WhatIsUndoneByOthersIsDoneAgain) {
  const QueueJob& job = slurm.Add(1, JobPhase::kPending);
  WantHeld(1);
  Turn();
  ASSERT_TRUE(slurm.Do(JobNumber(1), Verb::kRelease).ok());
  Turn(true);
  EXPECT_TRUE(job.held);
}

TEST_F(SteeringTest, WhileNothingChangesSlurmIsLeftAlone) {
  slurm.Add(1, JobPhase::kPending);
  WantHeld(1);
  Turn();
  slurm.health = absl::UnavailableError("nobody may ask");
  EXPECT_THAT(Turn(false), IsEmpty());
}

TEST_F(SteeringTest, AFailureIsTriedAgainAfterAWhile) {
  slurm.reservations["siding-7"].name = "siding-7";
  QueueJob& user = slurm.Add(1, JobPhase::kRunning);
  user.reservation = "siding-7";
  steering.Want({});
  EXPECT_FALSE(Turn().front().status.ok());
  EXPECT_THAT(Turn(), IsEmpty());
  user.phase = JobPhase::kEnded;
  now += kTryAgain;
  EXPECT_TRUE(Turn().front().status.ok());
}

TEST_F(SteeringTest, OneFailureDoesNotKeepOtherStepsFromBeingTaken) {
  slurm.reservations["siding-7"].name = "siding-7";
  slurm.reservations["siding-8"].name = "siding-8";
  slurm.Add(1, JobPhase::kRunning).reservation = "siding-7";
  steering.Want({});
  EXPECT_THAT(Turn(), SizeIs(2));
  EXPECT_THAT(slurm.reservations, SizeIs(1));
}

TEST_F(SteeringTest, ASlurmThatDoesNotAnswerIsAskedAgain) {
  slurm.Add(1, JobPhase::kPending);
  WantHeld(1);
  slurm.health = absl::UnavailableError("connect failure");
  EXPECT_TRUE(absl::IsUnavailable(Turn().front().status));
  slurm.health = absl::OkStatus();
  now += kTryAgain;
  EXPECT_THAT(Turn(), SizeIs(1));
}

}  // namespace
}  // namespace siding::slurm
