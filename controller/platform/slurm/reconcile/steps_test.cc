#include "controller/platform/slurm/reconcile/steps.h"

#include "controller/platform/slurm/client/fake_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::slurm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const NodeId kA("a"), kB("b");

class StepsTest : public testing::Test {
 protected:
  // Does all that there is to do, and says it: "job 1: suspended".
  std::vector<std::string> Bring() {
    std::vector<std::string> said;
    const auto jobs = *slurm.Jobs();
    const auto reservations = *slurm.Reservations();
    for (const Step& step : StepsTowards(desired, *jobs, *reservations, Time(), 0)) {
      for (const std::string& action : step.actions) said.push_back(step.target + ": " + action);
      EXPECT_TRUE(Apply(slurm, step).ok()) << step.target;
    }
    return said;
  }
  QueueJob& Waiting(uint32_t number) { return slurm.Add(number, JobPhase::kPending); }
  DesiredState::Job& Desired(uint32_t number) { return desired.jobs[JobId(number)]; }

  // An element of array 1, whose elements without a number of their own wait as well.
  QueueJob& Element(uint32_t number) {
    for (const uint32_t one : {1u, number}) {
      if (slurm.jobs.contains(JobNumber(one))) continue;
      QueueJob& job = Waiting(one);
      job.array = JobNumber(1);
      job.priority = 1000;
    }
    slurm.jobs.at(JobNumber(1)).array_tasks = "2-9%2";
    return slurm.jobs.at(JobNumber(number));
  }

  FakeClient slurm;
  DesiredState desired;
};

TEST_F(StepsTest, AJobIsMarkedBeforeItsNodesAreChosen) {
  Waiting(1);
  Desired(1) = {.nodes = {kA}, .why = "its image is there"};
  EXPECT_THAT(Bring(), ElementsAre("job 1: marked: its image is there", "job 1: to start on a"));
}

TEST_F(StepsTest, OnceGrantedThereIsNothingToDo) {
  Waiting(1);
  Desired(1) = {.nodes = {kA}, .why = "makes way"};
  desired.kept[JobId(1)] = {{kA}, "ann", {}};
  Bring();
  EXPECT_THAT(Bring(), IsEmpty());
}

TEST_F(StepsTest, TheMarkGoesAfterTheChosenNodes) {
  Waiting(1);
  Desired(1) = {.nodes = {kA}, .why = "its image is there"};
  Bring();
  desired.jobs.clear();
  EXPECT_THAT(Bring(), ElementsAre("job 1: free to run on any node", "job 1: mark removed"));
}

TEST_F(StepsTest, AMarkKeepsSayingPinnedUntilTheNodesAreGivenUp) {
  Waiting(1);
  Desired(1) = {.nodes = {kA}, .why = "makes way"};
  Bring();
  Desired(1).nodes.clear();
  const auto steps = StepsTowards(desired, **slurm.Jobs(), {}, Time(), 0);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_THAT(steps[0].actions, ElementsAre("free to run on any node", "marked: makes way"));
}

TEST_F(StepsTest, AHoldOfItsUsersStaysItsUsers) {
  QueueJob& job = Waiting(1);
  job.held = true;
  Desired(1) = {.why = "makes way"};
  Bring();
  EXPECT_EQ(job.admin_comment, "[siding: makes way]");
  desired.jobs.clear();
  Bring();
  EXPECT_TRUE(job.held);
}

TEST_F(StepsTest, AJobStartsWhereItIsDesired) {
  const QueueJob& job = Waiting(1);
  Desired(1) = {.nodes = {kA}, .why = "its image is there"};
  Bring();
  EXPECT_THAT(job.only_on, ElementsAre(kA));
  Desired(1).nodes = {kB};
  Bring();
  EXPECT_THAT(job.only_on, ElementsAre(kB));
}

TEST_F(StepsTest, ButWhereItsUserWantsItIfHeSaid) {
  QueueJob& job = Waiting(1);
  job.only_on = {kB};
  Desired(1) = {.nodes = {kA}, .why = "x"};
  Bring();
  EXPECT_THAT(job.only_on, ElementsAre(kB));
}

TEST_F(StepsTest, AnElementOfAnArrayStartsWhereSlurmPutsIt) {
  QueueJob& job = Waiting(2);
  job.array = JobNumber(1);
  Desired(2) = {.nodes = {kA}, .why = "x"};
  Bring();
  EXPECT_THAT(job.only_on, IsEmpty());
}

TEST_F(StepsTest, AnElementThatComesBackGoesBeforeItsSiblings) {
  const QueueJob& job = Element(2);
  Desired(2) = {.why = "makes way", .before_siblings = true};
  EXPECT_THAT(Bring(), ElementsAre("job 2: marked: makes way, nice -1"));
  EXPECT_EQ(job.priority, 1001u);
  EXPECT_EQ(job.admin_comment, "[siding nice=0/-1: makes way]");
  EXPECT_THAT(Bring(), IsEmpty());
}

TEST_F(StepsTest, UntilItRuns) {
  QueueJob& job = Element(2);
  Desired(2) = {.before_siblings = true};
  EXPECT_THAT(Bring(), ElementsAre("job 2: marked: continues before others of its array, nice -1"));
  job.phase = JobPhase::kRunning;
  EXPECT_THAT(Bring(), ElementsAre("job 2: mark removed, nice 0"));
  EXPECT_EQ(job.priority, 1000u);
}

TEST_F(StepsTest, ItsUsersNiceValueIsSetBack) {
  QueueJob& job = Element(2);
  slurm.jobs.at(JobNumber(1)).nice = job.nice = 7;
  Desired(2) = {.why = "makes way", .before_siblings = true};
  Bring();
  EXPECT_EQ(job.nice, 6);
  desired.jobs.clear();
  EXPECT_THAT(Bring(), ElementsAre("job 2: mark removed, nice 7"));
}

TEST_F(StepsTest, ANiceValueThatSomebodySetMeanwhileStays) {
  QueueJob& job = Element(2);
  Desired(2) = {.why = "makes way", .before_siblings = true};
  Bring();
  JobChange theirs;
  theirs.nice = 100;
  ASSERT_TRUE(slurm.Update(JobNumber(2), theirs).ok());
  slurm.jobs.at(JobNumber(1)).priority += 5;
  EXPECT_THAT(StepsTowards(desired, **slurm.Jobs(), {}, Time(), 200), IsEmpty());
  desired.jobs.clear();
  EXPECT_THAT(Bring(), ElementsAre("job 2: mark removed"));
  EXPECT_EQ(job.nice, 100);
}

// Slurm says nothing of it.
TEST_F(StepsTest, ANiceValueThatSlurmDoesNotTakeIsAskedForOnce) {
  const QueueJob& job = Element(2);
  slurm.takes_nice = false;
  Desired(2) = {.why = "makes way", .before_siblings = true};
  Bring();
  EXPECT_EQ(job.nice, 0);
  EXPECT_THAT(Bring(), IsEmpty());
  slurm.jobs.at(JobNumber(1)).priority += 5;
  EXPECT_THAT(StepsTowards(desired, **slurm.Jobs(), {}, Time(), 200), IsEmpty());
}

// Slurm would release it.
TEST_F(StepsTest, TheNiceValueOfAHeldElementStaysUntilItIsReleased) {
  QueueJob& job = Element(2);
  Desired(2) = {.why = "makes way", .before_siblings = true};
  Bring();
  const uint32_t priority = std::exchange(job.priority, 0);
  desired.jobs.clear();
  EXPECT_THAT(Bring(), IsEmpty());
  job.priority = priority;
  EXPECT_THAT(Bring(), ElementsAre("job 2: mark removed, nice 0"));
}

TEST_F(StepsTest, AnElementThatIsHeldGetsNone) {
  Element(2).priority = 0;
  Desired(2) = {.why = "makes way", .before_siblings = true};
  EXPECT_THAT(Bring(), ElementsAre("job 2: marked: makes way"));
}

TEST_F(StepsTest, WhenSiblingsHaveCaughtUpItGoesBeforeThemAgain) {
  const QueueJob& job = Element(2);
  Desired(2) = {.why = "makes way", .before_siblings = true};
  Bring();
  slurm.jobs.at(JobNumber(1)).priority += 5;
  const auto steps = StepsTowards(desired, **slurm.Jobs(), {}, Time(), 100);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_TRUE(Apply(slurm, steps[0]).ok());
  EXPECT_EQ(job.priority, 1006u);
  EXPECT_EQ(job.admin_comment, "[siding nice=0/-6: makes way]");
  EXPECT_THAT(StepsTowards(desired, **slurm.Jobs(), {}, Time(), 100), IsEmpty());
}

// Slurm shows each priority below 1 as 1, as with `sbatch --nice=10000`. How often it is told a nice value
// until there is nothing to do.
class LowPriorityTest : public StepsTest {
 protected:
  LowPriorityTest() {
    Element(2);
    for (auto& [number, job] : slurm.jobs) {
      slurm.factors[number] = 1000;
      job.nice = 10'000;
      job.priority = 1;
    }
    Desired(2) = {.why = "makes way", .before_siblings = true};
  }
  int UpdatesUntilDone(int64_t by_age) {
    for (int updates = 0;; ++updates) {
      const auto steps = StepsTowards(desired, **slurm.Jobs(), {}, Time(), by_age);
      if (steps.empty() || updates == 100) return updates;
      EXPECT_TRUE(Apply(slurm, steps[0]).ok());
    }
  }
  const QueueJob& element() { return slurm.jobs.at(JobNumber(2)); }
};

TEST_F(LowPriorityTest, HowFarBelowIsFoundInFewSteps) {
  EXPECT_LE(UpdatesUntilDone(100'001), 17);
  EXPECT_GT(element().priority, 1u);
  desired.jobs.clear();
  EXPECT_THAT(Bring(), ElementsAre("job 2: mark removed, nice 10000"));
}

TEST_F(LowPriorityTest, AndNotSoughtBeyondWhatWaitingGives) {
  EXPECT_LE(UpdatesUntilDone(5001), 14);
  EXPECT_EQ(element().priority, 1u);
  EXPECT_EQ(element().nice, 10'000 - 5001);
}

TEST_F(LowPriorityTest, NorBesideSiblingsThatAreNot) {
  slurm.jobs.at(JobNumber(1)).priority = 50;
  EXPECT_LE(UpdatesUntilDone(100'001), 17);
  EXPECT_GT(element().priority, 50u);
}

TEST_F(StepsTest, AJobOfNoArrayIsLeftAlone) {
  Waiting(1);
  Waiting(2);
  Desired(2) = {.before_siblings = true};
  EXPECT_THAT(Bring(), IsEmpty());
}

TEST_F(StepsTest, ARunningJobOnlySaysWhy) {
  const QueueJob& job = slurm.Add(1, JobPhase::kRunning);
  Desired(1) = {.nodes = {kA}, .why = "makes way"};
  EXPECT_THAT(Bring(), ElementsAre("job 1: marked: makes way"));
  EXPECT_EQ(job.admin_comment, "[siding: makes way]");
}

TEST_F(StepsTest, NodesAreKeptBeforeTheJobIsSentThere) {
  const QueueJob& job = Waiting(7);
  desired.kept[JobId(7)] = {{kA, kB}, "ann", {}};
  EXPECT_THAT(Bring(),
              ElementsAre("reservation siding-7: keeps a,b for ann", "job 7: into reservation siding-7"));
  EXPECT_EQ(job.reservation, "siding-7");
}

TEST_F(StepsTest, NodesThatNobodyNeedsAnyMoreAreFree) {
  Waiting(7);
  desired.kept[JobId(7)] = {{kA}, "ann", {}};
  Bring();
  desired.kept.clear();
  EXPECT_THAT(Bring(), ElementsAre("job 7: out of reservation siding-7", "reservation siding-7: deleted"));
}

TEST_F(StepsTest, OtherNodesMeanAReservationMadeAgain) {
  const QueueJob& job = Waiting(7);
  desired.kept[JobId(7)] = {{kA}, "ann", {}};
  Bring();
  desired.kept[JobId(7)].nodes = {kB};
  Bring();
  EXPECT_EQ(job.reservation, "");
  Bring();
  EXPECT_EQ(job.reservation, "siding-7");
  EXPECT_THAT(slurm.reservations["siding-7"].nodes, ElementsAre(kB));
}

TEST_F(StepsTest, NodesInAnotherOrderAreTheSame) {
  Waiting(7);
  desired.kept[JobId(7)] = {{kA, kB}, "ann", {}};
  Bring();
  desired.kept[JobId(7)].nodes = {kB, kA};
  EXPECT_THAT(Bring(), IsEmpty());
}

TEST_F(StepsTest, NodesAreNotKeptAgainForAJobThatHasThem) {
  slurm.Add(7, JobPhase::kRunning);
  desired.kept[JobId(7)] = {{kA}, "ann", {}};
  EXPECT_THAT(Bring(), IsEmpty());
}

TEST_F(StepsTest, AJobIsMarkedBeforeItIsSuspendedAndAfterItIsResumed) {
  slurm.Add(1, JobPhase::kRunning);
  Desired(1) = {.suspended = true, .why = "makes way"};
  EXPECT_THAT(Bring(), ElementsAre("job 1: marked: makes way", "job 1: suspended"));
  EXPECT_THAT(Bring(), IsEmpty());
  desired.jobs.clear();
  EXPECT_THAT(Bring(), ElementsAre("job 1: resumed", "job 1: mark removed"));
}

TEST_F(StepsTest, AJobThatSomebodyElseSuspendedStaysSo) {
  slurm.Add(1, JobPhase::kSuspended);
  Desired(1) = {.suspended = true, .why = "makes way"};
  Bring();
  desired.jobs.clear();
  EXPECT_THAT(Bring(), ElementsAre("job 1: mark removed"));
}

TEST_F(StepsTest, AReservationOfItsUsersStays) {
  QueueJob& job = Waiting(7);
  job.reservation = "course";
  slurm.reservations["course"].name = "course";
  desired.kept[JobId(7)] = {{kA}, "ann", {}};
  Bring();
  EXPECT_EQ(job.reservation, "course");
}

TEST_F(StepsTest, AStepEndsAtItsFirstError) {
  Waiting(1);
  Desired(1) = {.why = "makes way"};
  const auto steps = StepsTowards(desired, **slurm.Jobs(), {}, Time(), 0);
  slurm.jobs.clear();
  EXPECT_THAT(std::string(Apply(slurm, steps.front()).message()), HasSubstr("job 1"));
}

}  // namespace
}  // namespace siding::slurm
