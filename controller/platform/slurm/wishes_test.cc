#include "controller/platform/slurm/wishes.h"

#include "controller/platform/slurm/fake_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::slurm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const NodeId kA("a"), kB("b");

class WishesTest : public testing::Test {
 protected:
  // Does all that there is to do, and says it: "job 1: held".
  std::vector<std::string> Bring() {
    std::vector<std::string> said;
    const auto jobs = *slurm.Jobs();
    const auto reservations = *slurm.Reservations();
    for (const Step& step : StepsTowards(wishes, *jobs, *reservations, Time())) {
      for (const std::string& action : step.actions) said.push_back(step.target + ": " + action);
      EXPECT_TRUE(Take(slurm, step).ok()) << step.target;
    }
    return said;
  }
  QueueJob& Waiting(uint32_t number) { return slurm.Add(number, JobPhase::kPending); }
  JobWish& Wish(uint32_t number) { return wishes.jobs[JobNumber(number)]; }

  FakeClient slurm;
  Wishes wishes;
};

TEST_F(WishesTest, AJobIsMarkedBeforeItIsHeld) {
  Waiting(1);
  Wish(1) = {true, {}, "makes way"};
  EXPECT_THAT(Bring(), ElementsAre("job 1: marked: makes way", "job 1: held"));
}

TEST_F(WishesTest, OnceGrantedThereIsNothingToDo) {
  Waiting(1);
  Wish(1) = {true, {kA}, "makes way"};
  wishes.kept[JobNumber(1)] = {{kA}, "ann", {}};
  Bring();
  EXPECT_THAT(Bring(), IsEmpty());
}

TEST_F(WishesTest, TheMarkGoesAfterTheHold) {
  Waiting(1);
  Wish(1) = {true, {}, "makes way"};
  Bring();
  wishes.jobs.clear();
  EXPECT_THAT(Bring(), ElementsAre("job 1: released", "job 1: mark removed"));
}

TEST_F(WishesTest, AMarkKeepsSayingHeldUntilTheJobIsReleased) {
  Waiting(1);
  Wish(1) = {true, {}, "makes way"};
  Bring();
  Wish(1).held = false;
  const auto steps = StepsTowards(wishes, **slurm.Jobs(), {}, Time());
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_THAT(steps[0].actions, ElementsAre("released", "marked: makes way"));
}

TEST_F(WishesTest, AHoldOfItsUsersStaysItsUsers) {
  QueueJob& job = Waiting(1);
  ASSERT_TRUE(slurm.Do(JobNumber(1), Verb::kHold).ok());
  Wish(1) = {true, {}, "makes way"};
  Bring();
  EXPECT_EQ(job.admin_comment, "[siding: makes way]");
  wishes.jobs.clear();
  Bring();
  EXPECT_TRUE(job.held);
}

TEST_F(WishesTest, AJobStartsWhereItIsWished) {
  const QueueJob& job = Waiting(1);
  Wish(1) = {false, {kA}, "its image is there"};
  Bring();
  EXPECT_THAT(job.only_on, ElementsAre(kA));
  Wish(1).nodes = {kB};
  Bring();
  EXPECT_THAT(job.only_on, ElementsAre(kB));
}

TEST_F(WishesTest, ButWhereItsUserWantsItIfHeSaid) {
  QueueJob& job = Waiting(1);
  job.only_on = {kB};
  Wish(1) = {false, {kA}, "x"};
  Bring();
  EXPECT_THAT(job.only_on, ElementsAre(kB));
}

TEST_F(WishesTest, AnElementOfAnArrayStartsWhereSlurmPutsIt) {
  QueueJob& job = Waiting(2);
  job.array = JobNumber(1);
  Wish(2) = {false, {kA}, "x"};
  Bring();
  EXPECT_THAT(job.only_on, IsEmpty());
}

TEST_F(WishesTest, ARunningJobOnlySaysWhy) {
  const QueueJob& job = slurm.Add(1, JobPhase::kRunning);
  Wish(1) = {true, {kA}, "makes way"};
  EXPECT_THAT(Bring(), ElementsAre("job 1: marked: makes way"));
  EXPECT_EQ(job.admin_comment, "[siding: makes way]");
}

TEST_F(WishesTest, NodesAreKeptBeforeTheJobIsSentThere) {
  const QueueJob& job = Waiting(7);
  wishes.kept[JobNumber(7)] = {{kA, kB}, "ann", {}};
  EXPECT_THAT(Bring(),
              ElementsAre("reservation siding-7: keeps a,b for ann", "job 7: into reservation siding-7"));
  EXPECT_EQ(job.reservation, "siding-7");
}

TEST_F(WishesTest, NodesThatNobodyNeedsAnyMoreAreFree) {
  Waiting(7);
  wishes.kept[JobNumber(7)] = {{kA}, "ann", {}};
  Bring();
  wishes.kept.clear();
  EXPECT_THAT(Bring(), ElementsAre("job 7: out of reservation siding-7", "reservation siding-7: deleted"));
}

TEST_F(WishesTest, OtherNodesMeanAReservationMadeAnew) {
  const QueueJob& job = Waiting(7);
  wishes.kept[JobNumber(7)] = {{kA}, "ann", {}};
  Bring();
  wishes.kept[JobNumber(7)].nodes = {kB};
  Bring();
  EXPECT_EQ(job.reservation, "");
  Bring();
  EXPECT_EQ(job.reservation, "siding-7");
  EXPECT_THAT(slurm.reservations["siding-7"].nodes, ElementsAre(kB));
}

TEST_F(WishesTest, NodesInAnotherOrderAreTheSame) {
  Waiting(7);
  wishes.kept[JobNumber(7)] = {{kA, kB}, "ann", {}};
  Bring();
  wishes.kept[JobNumber(7)].nodes = {kB, kA};
  EXPECT_THAT(Bring(), IsEmpty());
}

TEST_F(WishesTest, NodesAreNotKeptAnewForAJobThatHasThem) {
  slurm.Add(7, JobPhase::kRunning);
  wishes.kept[JobNumber(7)] = {{kA}, "ann", {}};
  EXPECT_THAT(Bring(), IsEmpty());
}

TEST_F(WishesTest, AJobIsMarkedBeforeItIsSuspendedAndAfterItIsResumed) {
  slurm.Add(1, JobPhase::kRunning);
  Wish(1) = {.why = "makes way", .suspended = true};
  EXPECT_THAT(Bring(), ElementsAre("job 1: marked: makes way", "job 1: suspended"));
  EXPECT_THAT(Bring(), IsEmpty());
  wishes.jobs.clear();
  EXPECT_THAT(Bring(), ElementsAre("job 1: resumed", "job 1: mark removed"));
}

TEST_F(WishesTest, AJobThatSomebodyElseSuspendedStaysSo) {
  slurm.Add(1, JobPhase::kSuspended);
  Wish(1) = {.why = "makes way", .suspended = true};
  Bring();
  wishes.jobs.clear();
  EXPECT_THAT(Bring(), ElementsAre("job 1: mark removed"));
}

TEST_F(WishesTest, AReservationOfItsUsersStays) {
  QueueJob& job = Waiting(7);
  job.reservation = "course";
  slurm.reservations["course"].name = "course";
  wishes.kept[JobNumber(7)] = {{kA}, "ann", {}};
  Bring();
  EXPECT_EQ(job.reservation, "course");
}

TEST_F(WishesTest, AStepEndsAtItsFirstError) {
  Waiting(1);
  Wish(1) = {true, {}, "makes way"};
  const auto steps = StepsTowards(wishes, **slurm.Jobs(), {}, Time());
  slurm.jobs.clear();
  EXPECT_THAT(std::string(Take(slurm, steps.front()).message()), HasSubstr("job 1"));
}

}  // namespace
}  // namespace siding::slurm
