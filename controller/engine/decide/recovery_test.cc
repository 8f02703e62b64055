// Restores and starts that fail: what is kept, when and where it is tried again, and what is never done
// unasked.
#include "controller/engine/engine_fixture.h"
#include "controller/engine/state/state_text.h"

namespace siding {
namespace {

using testing::AllOf;

const MethodSet kNoKill = {Method::kSuspend, Method::kCheckpoint};

class FailedTest : public EngineTest {
 protected:
  std::string StateOf(const std::string& checkpoint) {
    std::string state;
    engine_->Read(
        [&](const ClusterState& s) { state = ToString(s.checkpoints.at(CheckpointId(checkpoint)).state); });
    return state;
  }
  std::string Text() {
    std::string text;
    engine_->Read([&](const ClusterState& s) { text = StateText(s); });
    return text;
  }
  std::vector<std::string> EventsOf(JobId job) {
    std::vector<std::string> kinds;
    for (const Event& event : engine_->EventsAfter(0, 1000, Duration(0))) {
      if (event.job == job) kinds.push_back(KindOf(event));
    }
    return kinds;
  }
  int Restores() const { return cluster_.Count(v1::ToAgent::kRestore); }
  int Launches() const { return cluster_.Count(v1::ToAgent::kLaunch); }
  JobId RunOn(std::initializer_list<const char*> nodes, MethodSet methods = kNoKill) {
    AddNodes(nodes);
    const JobId job = Submit(Batch(1, methods));
    Settle();
    return job;
  }
  // Ran on node "a", where it cannot be restored now.
  JobId ParkedAmongMissingFiles(MethodSet methods = kNoKill) {
    const JobId job = RunOn({"a"}, methods);
    cluster_.missing_files = {"a"};
    EXPECT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
    Settle(5);
    return job;
  }
  // An on-demand job, say.
  absl::Status Resume(JobId job) { return engine_->Resume(kAda, job); }
  absl::Status Restart(JobId job, const Caller& by = kAda) { return engine_->Restart(by, job); }
};

// ---- What is outside of the image says nothing of the image. ----

TEST_F(FailedTest, AnImageIsKeptHoweverOftenItsFilesAreMissing) {
  const JobId job = ParkedAmongMissingFiles();
  Settle(24 * 3600);
  EXPECT_EQ(State(job), JobState::kParked);
  EXPECT_EQ(StateOf("1.1"), "good");
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDelete), 0);
}

TEST_F(FailedTest, NorIsAJobThatAllowsKillStartedOver) {
  const JobId job = ParkedAmongMissingFiles({Method::kCheckpoint, Method::kKill});
  Settle(3600);
  EXPECT_EQ(State(job), JobState::kParked);
  EXPECT_EQ(Launches(), 1);
}

TEST_F(FailedTest, ItGoesOnFromItsImageWhenTheFilesAreBack) {
  const JobId job = ParkedAmongMissingFiles();
  cluster_.missing_files.clear();
  Settle(61);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Launches(), 1);
}

TEST_F(FailedTest, TheReasonSaysWhatIsMissingAndWhatToDo) {
  const JobId job = ParkedAmongMissingFiles();
  EXPECT_THAT(Job(job).reason, AllOf(HasSubstr("rank 0 on a: file /w/log has vanished"),
                                     HasSubstr("next try at "), HasSubstr("sidingctl resume 1")));
}

TEST_F(FailedTest, ItIsTriedAfterAMinuteAndThenEveryTenMinutes) {
  ParkedAmongMissingFiles();
  EXPECT_EQ(Restores(), 1);
  Settle(50);
  EXPECT_EQ(Restores(), 1);
  Settle(10);
  EXPECT_EQ(Restores(), 2);
  Settle(590);
  EXPECT_EQ(Restores(), 2);
  Settle(15);
  EXPECT_EQ(Restores(), 3);
  Settle(6000);
  EXPECT_EQ(Restores(), 13);
}

TEST_F(FailedTest, AnUnknownFailureIsTriedAgainInAMomentAndThenLessAndLessOften) {
  const JobId job = RunOn({"a"});
  cluster_.fail_restore = {"a"};
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle(8);
  EXPECT_GE(Restores(), 3);
  Settle(600);
  const int so_far = Restores();
  Settle(6000);
  EXPECT_EQ(Restores() - so_far, 10);
  EXPECT_EQ(StateOf("1.1"), "good");
  cluster_.fail_restore.clear();
  Settle(601);
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(FailedTest, ItIsTriedAtOnceWhereItsFilesMayBe) {
  const JobId job = RunOn({"a", "b"});
  ASSERT_EQ(Job(job).nodes[0], NodeId("a"));
  cluster_.missing_files = {"a"};
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle(5);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).nodes[0], NodeId("b"));
}

TEST_F(FailedTest, ItIsTriedOnThreeNodesInARowAndNotOnAll) {
  const JobId job = RunOn({"a", "b", "c", "d", "e"});
  cluster_.missing_files = {"a", "b", "c", "d", "e"};
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle(30);
  EXPECT_EQ(Restores(), 3);
  Settle(40);
  EXPECT_EQ(Restores(), 6);
}

TEST_F(FailedTest, WhileItWaitsItHoldsBackNobody) {
  const JobId job = ParkedAmongMissingFiles();
  cluster_.missing_files.clear();
  const JobId other = Submit(Batch());
  Settle(3);
  EXPECT_EQ(State(other), JobState::kRunning);
  EXPECT_EQ(State(job), JobState::kParked);
}

TEST_F(FailedTest, AJobThatMadeWayIsTriedAgainInTheSameWay) {
  const JobId job = RunOn({"a"}, {Method::kCheckpoint});
  const JobId express = Submit(OnDemand(1), kBob);
  Settle();
  ASSERT_EQ(State(express), JobState::kRunning);
  cluster_.missing_files = {"a"};
  cluster_.Exit(express, 0, 0);
  Settle(30);
  EXPECT_EQ(State(job), JobState::kParked);
  EXPECT_EQ(Restores(), 1);
  cluster_.missing_files.clear();
  Settle(40);
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(FailedTest, ResumeTriesItAtOnce) {
  const JobId job = ParkedAmongMissingFiles();
  cluster_.missing_files.clear();
  ASSERT_TRUE(Resume(job).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(FailedTest, ResumeIsRefusedToAJobThatOnlyWaitsForNodes) {
  const JobId job = RunOn({"a"});
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("a"), true).ok());
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle();
  EXPECT_THAT(std::string(Resume(job).message()), HasSubstr("it waits for nodes"));
}

TEST_F(FailedTest, ARestartedControllerKnowsTheReasonAndTriesAgain) {
  const JobId job = ParkedAmongMissingFiles();
  const std::string reason = Job(job).reason, text = Text();
  StartController();
  EXPECT_EQ(Text(), text);
  EXPECT_EQ(Job(job).reason, reason);
  cluster_.missing_files.clear();
  cluster_.Connect("a");
  Settle(15);
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(FailedTest, TheOwnerMayDeleteTheNewestImageToGoOnFromTheOneBefore) {
  const JobId job = RunOn({"a"});
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  cluster_.missing_files = {"a"};
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle();
  cluster_.missing_files.clear();
  ASSERT_TRUE(engine_->DeleteCheckpoint(kAda, CheckpointId("1.2")).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kRestore).restore().checkpoint(), "1.1");
}

// ---- What the program saved itself is kept as an image is. ----

TEST_F(FailedTest, AnOwnSaveIsKeptWhileTheWorkingFolderIsAway) {
  AddNodes({"a"});
  JobSpec spec = Batch(1, {Method::kApp});
  spec.app.emplace();
  const JobId job = Submit(spec);
  Settle();
  const JobId express = Submit(OnDemand(1), kBob);
  Settle();
  ASSERT_EQ(State(job), JobState::kParked);
  cluster_.missing_files = {"a"};
  cluster_.Exit(express, 0, 0);
  Settle(30);
  EXPECT_EQ(State(job), JobState::kParked);
  EXPECT_TRUE(Job(job).saved_at);
  cluster_.missing_files.clear();
  Settle(40);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_TRUE(cluster_.LastLaunch().restart_after_save());
}

TEST_F(FailedTest, AnOwnSaveThatDoesNotStartIsKeptIfItsUserWantsToBeAsked) {
  AddNodes({"a"});
  JobSpec spec = Batch(1, {Method::kApp, Method::kKill});
  spec.app.emplace();
  spec.on_node_failure = OnNodeFailure::kPark;
  const JobId job = Submit(spec);
  Settle(600);  // to save it is cheaper than to kill it
  const JobId express = Submit(OnDemand(1), kBob);
  Settle();
  ASSERT_EQ(State(job), JobState::kParked);
  cluster_.broken_jobs = {job};
  cluster_.Exit(express, 0, 0);
  Settle(30);
  EXPECT_EQ(State(job), JobState::kParked);
  EXPECT_TRUE(Job(job).saved_at);
}

TEST_F(FailedTest, AJobThatWasKilledToMakeWayDoesNotFailWhenItsFolderIsAwayForAMoment) {
  const JobId job = RunOn({"a"}, {Method::kKill});
  const JobId express = Submit(OnDemand(1), kBob);
  Settle();
  ASSERT_EQ(State(job), JobState::kPending);
  cluster_.missing_files = {"a"};
  cluster_.Exit(express, 0, 0);
  Settle(100);
  EXPECT_EQ(State(job), JobState::kPending);
  EXPECT_THAT(Job(job).reason, HasSubstr("cannot enter the working folder"));
  cluster_.missing_files.clear();
  Settle(60);
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(FailedTest, AJobWhoseFolderIsMissingWhenItStartsForTheFirstTimeFails) {
  AddNodes({"a"});
  cluster_.missing_files = {"a"};
  const JobId job = Submit(Batch());
  Settle();
  EXPECT_EQ(State(job), JobState::kFailed);
}

// ---- A damaged image. ----

class WithImagesTest : public FailedTest {
 protected:
  // Off its node, with this many images.
  JobId ParkedWithImages(int count, MethodSet methods) {
    const JobId job = RunOn({"a"}, methods);
    for (int i = 1; i < count; ++i) {
      EXPECT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
      Settle();
    }
    EXPECT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
    return job;
  }
};
using DamagedTest = WithImagesTest;

TEST_F(DamagedTest, TheJobGoesOnFromTheOneBefore) {
  cluster_.damaged = {"1.2"};
  const JobId job = ParkedWithImages(2, kNoKill);
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(StateOf("1.2"), "damaged");
  EXPECT_EQ(Job(job).restarts, 0);
}

TEST_F(DamagedTest, IfItWasTheLastTheJobWaitsForAWord) {
  cluster_.damaged = {"1.1"};
  const JobId job = ParkedWithImages(1, kNoKill);
  Settle(3600);
  EXPECT_EQ(State(job), JobState::kParked);
  EXPECT_EQ(Launches(), 1);
  EXPECT_THAT(Job(job).reason, AllOf(HasSubstr("checksum differs"), HasSubstr("sidingctl restart 1")));
  EXPECT_THAT(std::string(Resume(job).message()), HasSubstr("sidingctl restart 1"));
}

TEST_F(DamagedTest, AJobThatAllowsKillStartsOverAndItIsSaid) {
  cluster_.damaged = {"1.1"};
  const JobId job = ParkedWithImages(1, {Method::kCheckpoint, Method::kKill});
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).restarts, 1);
  EXPECT_THAT(Job(job).restart_reason, HasSubstr("checksum differs"));
  EXPECT_THAT(EventsOf(job), testing::Contains("restart-needed"));
}

TEST_F(DamagedTest, TheLastOneFoundDamagedWhileTheJobIsParkedLeavesItWaiting) {
  const JobId job = ParkedWithImages(1, kNoKill);
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("a"), true).ok());
  Settle();
  cluster_.FindDamaged("a", "1.1");
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("a"), false).ok());
  Settle(60);
  EXPECT_EQ(State(job), JobState::kParked);
  EXPECT_THAT(Job(job).reason, HasSubstr("sidingctl restart 1"));
}

// ---- An image that criu refuses. ----

class RefusedTest : public WithImagesTest {
 protected:
  // Its only image has been refused for good.
  JobId GivenUp() {
    cluster_.refused = {"1.1"};
    const JobId job = ParkedWithImages(1, kNoKill);
    Settle(4300);
    EXPECT_EQ(StateOf("1.1"), "refused");
    return job;
  }
};

TEST_F(RefusedTest, ItIsTriedForAnHourWhereThereIsOneNodeOnly) {
  cluster_.refused = {"1.1"};
  const JobId job = ParkedWithImages(1, kNoKill);
  Settle(3500);
  EXPECT_EQ(State(job), JobState::kParked);
  EXPECT_EQ(StateOf("1.1"), "good");
  Settle(800);
  EXPECT_EQ(StateOf("1.1"), "refused");
}

TEST_F(RefusedTest, AndTenMinutesWhereASecondNodeRefusesItToo) {
  cluster_.refused = {"1.1"};
  AddNodes({"b"});
  ParkedWithImages(1, kNoKill);
  Settle(500);
  EXPECT_EQ(StateOf("1.1"), "good");
  Settle(800);
  EXPECT_EQ(StateOf("1.1"), "refused");
}

TEST_F(RefusedTest, ANodeThatTakesItGetsIt) {
  cluster_.refused = {"1.1"};
  cluster_.takes_refused = {"b"};
  AddNodes({"b"});
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("b"), true).ok());
  const JobId job = ParkedWithImages(1, kNoKill);
  Settle(60);
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("b"), false).ok());
  Settle(60);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).nodes[0], NodeId("b"));
}

TEST_F(RefusedTest, TheReasonSaysWhatWasTriedAndWhatToDo) {
  const JobId job = GivenUp();
  EXPECT_EQ(State(job), JobState::kParked);
  EXPECT_THAT(Job(job).reason, AllOf(HasSubstr("criu: Can't restore mapping; refused "),
                                     HasSubstr("sidingctl restart 1"), HasSubstr("sidingctl resume 1")));
}

TEST_F(RefusedTest, ItIsAnEventOfTheJob) {
  const JobId job = GivenUp();
  std::string text;
  for (const Event& event : engine_->EventsAfter(0, 1000, Duration(0))) {
    if (event.job == job && KindOf(event) == "checkpoint-refused") text = Describe(event);
  }
  EXPECT_THAT(text, testing::StartsWith("checkpoint 1.1 refused: rank 0 on a: criu: Can't restore mapping"));
}

TEST_F(RefusedTest, ItIsNotTriedAnyMore) {
  GivenUp();
  const int so_far = Restores();
  Settle(24 * 3600);
  EXPECT_EQ(Restores(), so_far);
}

TEST_F(RefusedTest, ItIsKeptForALook) {
  GivenUp();
  Settle(24 * 3600);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDelete), 0);
}

TEST_F(RefusedTest, ItsOwnerMayDeleteIt) {
  GivenUp();
  EXPECT_TRUE(engine_->DeleteCheckpoint(kAda, CheckpointId("1.1")).ok());
  Settle();
  EXPECT_EQ(StateOf("1.1"), "gone");
}

TEST_F(RefusedTest, TheJobGoesOnFromTheOneBeforeAndNoMoreAreMade) {
  cluster_.refused = {"1.2"};
  const JobId job = ParkedWithImages(2, kNoKill);
  Settle(4300);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kRestore).restore().checkpoint(), "1.1");
  EXPECT_EQ(StateOf("1.2"), "refused");
  EXPECT_EQ(Job(job).lost_methods.at(Method::kCheckpoint), "no restore took its checkpoint 1.2");
}

TEST_F(RefusedTest, AJobThatAllowsKillStartsOverAndNoMoreAreMade) {
  cluster_.refused = {"1.1"};
  const JobId job = ParkedWithImages(1, {Method::kCheckpoint, Method::kKill});
  Settle(4300);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).restarts, 1);
  EXPECT_TRUE(Job(job).lost_methods.contains(Method::kCheckpoint));
}

TEST_F(RefusedTest, ResumeTriesItOnceMore) {
  const JobId job = GivenUp();
  cluster_.refused.clear();
  ASSERT_TRUE(Resume(job).ok());
  Settle(5);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(StateOf("1.1"), "good");
  EXPECT_FALSE(Job(job).lost_methods.contains(Method::kCheckpoint));
}

TEST_F(RefusedTest, OneOfBeforeARestartIsNotTriedOnceMore) {
  const JobId job = GivenUp();
  ASSERT_TRUE(Restart(job).ok());
  Settle(5);
  ASSERT_EQ(State(job), JobState::kRunning);
  cluster_.Vanish(job);
  Settle(60);
  ASSERT_EQ(State(job), JobState::kParked);
  EXPECT_THAT(std::string(Resume(job).message()), HasSubstr("nothing is left"));
}

TEST_F(RefusedTest, ItIsInTheJournal) {
  GivenUp();
  const std::string text = Text();
  StartController();
  EXPECT_EQ(Text(), text);
  EXPECT_EQ(StateOf("1.1"), "refused");
}

TEST_F(RefusedTest, RefusalsOfANewerOneDoNotCount) {
  cluster_.refused = {"1.1", "1.2"};
  ParkedWithImages(2, kNoKill);
  Settle(3500);
  ASSERT_EQ(StateOf("1.2"), "good");
  cluster_.FindDamaged("a", "1.2");
  Settle(1800);
  EXPECT_EQ(StateOf("1.2"), "damaged");
  EXPECT_EQ(StateOf("1.1"), "good");
  Settle(2400);
  EXPECT_EQ(StateOf("1.1"), "refused");
}

TEST_F(RefusedTest, ItsOwnerMayDeleteItToHaveOthersMade) {
  cluster_.refused = {"1.2"};
  const JobId job = ParkedWithImages(2, kNoKill);
  Settle(4300);
  ASSERT_TRUE(Job(job).lost_methods.contains(Method::kCheckpoint));
  ASSERT_TRUE(engine_->DeleteCheckpoint(kAda, CheckpointId("1.2")).ok());
  EXPECT_FALSE(Job(job).lost_methods.contains(Method::kCheckpoint));
}

TEST_F(RefusedTest, AControllerThatStartsCountsAnew) {
  cluster_.refused = {"1.1"};
  ParkedWithImages(1, kNoKill);
  Settle(3500);
  StartController();
  cluster_.Connect("a");
  Settle(3000);
  EXPECT_EQ(StateOf("1.1"), "good");
}

// ---- From the beginning only if it may, or if its user or an operator says so. ----

TEST_F(FailedTest, ATaskThatIsGoneWithoutAnImageWaitsForAWord) {
  const JobId job = RunOn({"a", "b"});
  cluster_.Vanish(job);
  Settle(3600);
  EXPECT_EQ(State(job), JobState::kParked);
  EXPECT_EQ(Launches(), 1);
  ASSERT_TRUE(Restart(job).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Launches(), 2);
}

TEST_F(FailedTest, SoDoesAnOnDemandJobThatIsToBeParkedAndThoseThatMadeWayForItGoOnMeanwhile) {
  const JobId victim = RunOn({"a"});
  JobSpec spec = OnDemand(1);
  spec.on_node_failure = OnNodeFailure::kPark;
  const JobId express = Submit(spec, kBob);
  Settle();
  ASSERT_EQ(State(express), JobState::kRunning);
  cluster_.Vanish(express);
  Settle(30);
  EXPECT_EQ(State(express), JobState::kParked);
  EXPECT_EQ(State(victim), JobState::kRunning);
  EXPECT_TRUE(Restart(express, kBob).ok());
  Settle(5);
  EXPECT_EQ(State(express), JobState::kRunning);
}

TEST_F(FailedTest, AStartThatDidNotComeToItsEndIsMadeAgain) {
  AddNodes({"a"});
  cluster_.fail_start = {"a"};
  const JobId job = Submit(Batch(1, kNoKill));
  cluster_.Run();
  cluster_.fail_start.clear();
  Settle(12);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).restarts, 0);
}

TEST_F(FailedTest, RestartIsForItsUserAndOperators) {
  const JobId job = ParkedAmongMissingFiles();
  EXPECT_TRUE(absl::IsNotFound(Restart(job, kBob)));
  EXPECT_TRUE(Restart(job, kRoot).ok());
  EXPECT_THAT(Job(job).restart_reason, HasSubstr("asked for by root"));
}

TEST_F(FailedTest, RestartIsForParkedJobsOnly) {
  const JobId job = RunOn({"a"});
  const JobId waiting = Submit(Batch());
  EXPECT_THAT(std::string(Restart(job).message()), HasSubstr("job 1 is running: only a parked job"));
  EXPECT_THAT(std::string(Restart(waiting).message()),
              HasSubstr("job 2 is pending: it starts from the beginning"));
}

class StartedAgainTest : public FailedTest {
 protected:
  // From the beginning, with an image from before.
  JobId StartedAgain() {
    const JobId job = ParkedAmongMissingFiles();
    cluster_.missing_files.clear();
    EXPECT_TRUE(Restart(job).ok());
    Settle();
    return job;
  }
};

TEST_F(StartedAgainTest, ImagesOfBeforeAreNotGoneOnFrom) {
  const JobId job = StartedAgain();
  ASSERT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(StateOf("1.1"), "good") << "newer ones push it out, or its end";
  cluster_.Vanish(job);
  Settle(60);
  EXPECT_EQ(State(job), JobState::kParked);
  EXPECT_EQ(Restores(), 1) << "the one before the restart";
}

TEST_F(StartedAgainTest, ItGoesOnFromNewImages) {
  const JobId job = StartedAgain();
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kRestore).restore().checkpoint(), "1.2");
}

TEST_F(StartedAgainTest, TheOnlyImageToGoOnFromIsNotDeleted) {
  const JobId job = StartedAgain();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  EXPECT_THAT(std::string(engine_->DeleteCheckpoint(kAda, CheckpointId("1.2")).message()),
              HasSubstr("the last good one"));
  EXPECT_TRUE(engine_->DeleteCheckpoint(kAda, CheckpointId("1.1")).ok()) << "of before the restart";
}

TEST_F(FailedTest, TheRestartThatKillToMakeWayMeansIsNotCounted) {
  const JobId job = RunOn({"a"}, {Method::kKill});
  const JobId express = Submit(OnDemand(1), kBob);
  Settle();
  cluster_.Exit(express, 0, 0);
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).restarts, 0);
  EXPECT_NE(Job(job).begun, Time{});
}

TEST_F(FailedTest, ARestartIsInTheJournal) {
  const JobId job = ParkedAmongMissingFiles();
  ASSERT_TRUE(Restart(job).ok());
  const std::string text = Text();
  StartController();
  EXPECT_EQ(Text(), text);
  EXPECT_EQ(Job(job).restarts, 1);
}

// ---- Images of jobs that have ended. ----

TEST_F(FailedTest, ImagesOfAJobThatFailedAreKeptAsLongAsThePolicySays) {
  policy_.keep_failed_images = 2h;
  StartController();
  const JobId job = RunOn({"a"});
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  cluster_.Exit(job, 0, 1);
  Settle(7000);
  ASSERT_EQ(State(job), JobState::kFailed);
  EXPECT_EQ(StateOf("1.1"), "good");
  Settle(300);
  EXPECT_EQ(StateOf("1.1"), "gone");
}

TEST_F(FailedTest, ADamagedOneOfAJobThatFailedIsKeptAsLong) {
  policy_.keep_failed_images = 2h;
  StartController();
  const JobId job = RunOn({"a"});
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  cluster_.FindDamaged("a", "1.1");
  cluster_.Exit(job, 0, 1);
  Settle(7000);
  EXPECT_EQ(StateOf("1.1"), "damaged");
  Settle(300);
  EXPECT_EQ(StateOf("1.1"), "gone");
}

TEST_F(FailedTest, AJobThatFailedIsNotForgottenBeforeItsImagesMayGo) {
  policy_.keep_failed_images = 2h;
  StartController();
  engine_->SetRetention({.keep_ended = 1s, .keep_ended_jobs = 0});
  const JobId job = RunOn({"a"});
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  cluster_.Exit(job, 0, 1);
  Settle(7000);
  EXPECT_EQ(StateOf("1.1"), "good");
  Settle(300);
  engine_->Read([&](const ClusterState& state) { EXPECT_FALSE(state.jobs.contains(job)); });
}

}  // namespace
}  // namespace siding
