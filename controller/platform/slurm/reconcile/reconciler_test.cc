#include "controller/platform/slurm/reconcile/reconciler.h"

#include "controller/platform/slurm/client/fake_client.h"
#include "controller/platform/slurm/client/guarded_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::slurm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const NodeId kNode("a");

class ReconcilerTest : public testing::Test {
 protected:
  std::vector<StepResult> Reconcile(bool changed = false) {
    const absl::Status health = std::exchange(slurm.health, absl::OkStatus());
    const auto jobs = *slurm.Jobs();
    slurm.health = health;
    return reconciler.Reconcile(*jobs, changed, now);
  }
  void DesireOnNode(uint32_t job) {
    DesiredState desired;
    desired.jobs[JobId(job)] = {.nodes = {kNode}, .why = "its image is there"};
    reconciler.SetDesired(desired);
  }

  FakeClient slurm;
  Reconciler reconciler{slurm};
  Time now = FromMicros(1);
};

TEST_F(ReconcilerTest, BeforeAnythingIsDesiredNothingIsTakenBack) {
  slurm.reservations["siding-7"].name = "siding-7";
  EXPECT_THAT(Reconcile(true), IsEmpty());
  EXPECT_THAT(slurm.reservations, SizeIs(1));
}

TEST_F(ReconcilerTest, AnEmptyDesiredStateTakesEverythingBack) {
  slurm.reservations["siding-7"].name = "siding-7";
  reconciler.SetDesired({});
  EXPECT_THAT(Reconcile(), SizeIs(1));
  EXPECT_THAT(slurm.reservations, IsEmpty());
}

TEST_F(ReconcilerTest, ANewDesiredStateIsTakenUpAtOnce) {
  const QueueJob& job = slurm.Add(1, JobPhase::kPending);
  DesireOnNode(1);
  EXPECT_THAT(Reconcile(), SizeIs(1));
  EXPECT_THAT(job.only_on, ElementsAre(kNode));
}

TEST_F(ReconcilerTest, WhatIsDesiredOfAJobIsDoneWhenItIsThere) {
  DesireOnNode(1);
  EXPECT_THAT(Reconcile(), IsEmpty());
  const QueueJob& job = slurm.Add(1, JobPhase::kPending);
  EXPECT_THAT(Reconcile(true), SizeIs(1));
  EXPECT_THAT(job.only_on, ElementsAre(kNode));
}

TEST_F(ReconcilerTest, WhatIsUndoneByOthersIsDoneAgain) {
  const QueueJob& job = slurm.Add(1, JobPhase::kPending);
  DesireOnNode(1);
  Reconcile();
  JobChange undo;
  undo.only_on.emplace();
  ASSERT_TRUE(slurm.Update(JobNumber(1), undo).ok());
  Reconcile(true);
  EXPECT_THAT(job.only_on, ElementsAre(kNode));
}

TEST_F(ReconcilerTest, WhileNothingChangesSlurmIsLeftAlone) {
  slurm.Add(1, JobPhase::kPending);
  DesireOnNode(1);
  Reconcile();
  slurm.health = absl::UnavailableError("nobody may ask");
  EXPECT_THAT(Reconcile(false), IsEmpty());
}

TEST_F(ReconcilerTest, WhatSettingsAllowIsDoneWhenTheyAreKnown) {
  for (const uint32_t number : {1u, 2u}) slurm.Add(number, JobPhase::kPending).array = JobNumber(1);
  slurm.jobs.at(JobNumber(1)).priority = 900;
  slurm.jobs.at(JobNumber(2)).priority = 800;
  DesiredState desired;
  desired.jobs[JobId(2)].before_siblings = true;
  reconciler.SetDesired(desired);
  EXPECT_THAT(Reconcile(), IsEmpty());
  reconciler.SetPriorityByAge(100);
  EXPECT_THAT(Reconcile(), SizeIs(1));
  EXPECT_EQ(slurm.jobs.at(JobNumber(2)).priority, 901u);
  reconciler.SetPriorityByAge(100);
  slurm.health = absl::UnavailableError("nobody may ask");
  EXPECT_THAT(Reconcile(), IsEmpty());
}

TEST_F(ReconcilerTest, AFailureIsTriedAgainAfterAWhile) {
  slurm.reservations["siding-7"].name = "siding-7";
  QueueJob& user = slurm.Add(1, JobPhase::kRunning);
  user.reservation = "siding-7";
  reconciler.SetDesired({});
  EXPECT_FALSE(Reconcile().front().status.ok());
  EXPECT_THAT(Reconcile(), IsEmpty());
  user.phase = JobPhase::kEnded;
  now += kRetryAfter;
  EXPECT_TRUE(Reconcile().front().status.ok());
}

TEST_F(ReconcilerTest, OneFailureDoesNotKeepOtherStepsFromBeingTaken) {
  slurm.reservations["siding-7"].name = "siding-7";
  slurm.reservations["siding-8"].name = "siding-8";
  slurm.Add(1, JobPhase::kRunning).reservation = "siding-7";
  reconciler.SetDesired({});
  EXPECT_THAT(Reconcile(), SizeIs(2));
  EXPECT_THAT(slurm.reservations, SizeIs(1));
}

TEST_F(ReconcilerTest, NothingMoreIsAskedOfASlurmThatDoesNotAnswer) {
  auto fake = std::make_unique<FakeClient>();
  for (const char* name : {"siding-7", "siding-8"}) fake->reservations[name].name = name;
  const auto away = NewGuardedClient(std::move(fake), [] { return absl::UnavailableError("timed out"); });
  Reconciler of_away{*away};
  of_away.SetDesired({});
  EXPECT_THAT(of_away.Reconcile({}, true, now), SizeIs(1));
}

TEST_F(ReconcilerTest, ASlurmThatDoesNotAnswerIsAskedAgain) {
  slurm.Add(1, JobPhase::kPending);
  DesireOnNode(1);
  slurm.health = absl::UnavailableError("connect failure");
  EXPECT_TRUE(absl::IsUnavailable(Reconcile().front().status));
  slurm.health = absl::OkStatus();
  now += kRetryAfter;
  EXPECT_THAT(Reconcile(), SizeIs(1));
}

}  // namespace
}  // namespace siding::slurm
