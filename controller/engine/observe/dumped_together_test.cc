// Ranks of a job that runs on are stopped together, and run again together.
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

using testing::HasSubstr;

class DumpedTogetherTest : public EngineTest {
 protected:
  // A job of two ranks that is to be checkpointed.
  void Begin() {
    StartController();
    AddNodes({"a", "b"});
    job_ = Submit(Batch(2));
    Settle();
    Checkpoint();
  }
  void Checkpoint() {
    ASSERT_TRUE(engine_->Checkpoint(kAda, job_, Tier::kShared).ok());
    Settle();
  }
  int Passed() const { return cluster_.Count(v1::ToAgent::kPassBarrier); }
  size_t Images() { return Job(job_).checkpoints.size(); }
  std::string NewestReason() {
    const std::vector<Event> events = engine_->EventsAfter(0, 10000, Duration(0));
    return events.empty() ? std::string() : Describe(events.back());
  }

  JobId job_;
};

TEST_F(DumpedTogetherTest, EachPassesTwoBarriersAndTheImagesCount) {
  Begin();
  EXPECT_EQ(Passed(), 4);
  EXPECT_EQ(Images(), 1u);
  EXPECT_EQ(State(job_), JobState::kRunning);
}

TEST_F(DumpedTogetherTest, NobodyWaitsForTheNextLook) {
  StartController();
  AddNodes({"a", "b"});
  job_ = Submit(Batch(2));
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job_, Tier::kShared).ok());
  cluster_.Run();
  EXPECT_EQ(Images(), 1u);
}

TEST_F(DumpedTogetherTest, NoneIsStoppedBeforeAllCanBe) {
  cluster_.slow_dump = {"b"};
  Begin();
  EXPECT_EQ(Passed(), 0);
  EXPECT_EQ(State(job_), JobState::kDumping);
}

TEST_F(DumpedTogetherTest, NoneRunsOnBeforeAllAreCaptured) {
  cluster_.slow_capture = {"b"};
  Begin();
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kPassBarrier).pass_barrier().barrier(), v1::BARRIER_STOP);
  EXPECT_EQ(State(job_), JobState::kDumping);
}

TEST_F(DumpedTogetherTest, AJobOfOneRankMeetsNobody) {
  StartController();
  AddNodes({"a"});
  job_ = Submit(Batch());
  Settle();
  Checkpoint();
  EXPECT_FALSE(cluster_.Last(v1::ToAgent::kDump).dump().together());
  EXPECT_EQ(Images(), 1u);
}

TEST_F(DumpedTogetherTest, AnAgentThatKnowsNoBarriersKeepsItsRankStoppedForTheOthers) {
  cluster_.no_barriers = {"b"};
  Begin();
  EXPECT_EQ(Passed(), 2);
  EXPECT_EQ(Images(), 1u);
}

TEST_F(DumpedTogetherTest, OneThatFailsIsNotDumpedAgainForTheOthers) {
  cluster_.fail_capture = {"b"};
  Begin();
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDump), 2);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kAbort), 1);
  EXPECT_EQ(State(job_), JobState::kRunning);
  EXPECT_EQ(Images(), 0u);
  EXPECT_EQ(cluster_.Running(job_), 2);
}

TEST_F(DumpedTogetherTest, OnlyTheSecondFailureInARowIsHeldAgainstTheJob) {
  cluster_.fail_capture = {"b"};
  Begin();
  EXPECT_TRUE(Job(job_).methods_back_at.empty());
  Checkpoint();
  EXPECT_TRUE(Job(job_).methods_back_at.contains(Method::kCheckpoint));
}

TEST_F(DumpedTogetherTest, OneThatFailsBehindTheOthersIsNotDumpedAgainEither) {
  cluster_.slow_behind = {"b"};
  Begin();
  ASSERT_EQ(State(job_), JobState::kDumping);
  cluster_.Restart("b");
  Settle();
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDump), 2);
  EXPECT_EQ(State(job_), JobState::kRunning);
  EXPECT_EQ(Images(), 0u);
}

TEST_F(DumpedTogetherTest, NobodyIsStoppedForOneThatCannotBeTold) {
  cluster_.slow_dump = {"a"};
  Begin();
  cluster_.Disconnect("b");
  cluster_.ComeToBarrier("a", v1::BARRIER_STOP);
  Settle();
  EXPECT_EQ(Passed(), 0);
  cluster_.Connect("b");
  Settle(20);
  EXPECT_EQ(Images(), 1u);
}

TEST_F(DumpedTogetherTest, NorIsTheOnlyRankThatIsLeft) {
  StartController();
  AddNodes({"a", "b"});
  job_ = Submit(Batch(2));
  Settle();
  cluster_.Exit(job_, 1, 0);
  Settle();
  cluster_.slow_commit = {"a"};
  ASSERT_TRUE(engine_->Checkpoint(kAda, job_, Tier::kShared).ok());
  Settle();
  ASSERT_EQ(State(job_), JobState::kCommitting);
  cluster_.slow_commit = {};
  cluster_.Restart("a");
  Settle(5);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDump), 1);
  EXPECT_EQ(State(job_), JobState::kRunning);
  EXPECT_EQ(Images(), 0u);
}

TEST_F(DumpedTogetherTest, AfterADeathOfAnAgentTheWholeIsGivenUp) {
  cluster_.slow_capture = {"b"};
  Begin();
  cluster_.Restart("a");
  Settle();
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDump), 2);
  EXPECT_EQ(cluster_.Running(job_), 2);
  EXPECT_EQ(Images(), 0u);
}

TEST_F(DumpedTogetherTest, ARankThatEndsMeanwhileIsInTheImageOfNone) {
  cluster_.slow_commit = {"a", "b"};
  Begin();
  ASSERT_EQ(State(job_), JobState::kCommitting);
  cluster_.Exit(job_, 1, 0);
  Settle();
  EXPECT_EQ(State(job_), JobState::kRunning);
  EXPECT_EQ(Images(), 0u);
  EXPECT_THAT(NewestReason(), HasSubstr("one of its ranks ended meanwhile"));
}

TEST_F(DumpedTogetherTest, ANewControllerLetsThemPass) {
  cluster_.slow_capture = {"b"};
  Begin();
  cluster_.slow_capture = {};
  StartController();
  cluster_.Connect("a");
  cluster_.Connect("b");
  Settle(20);
  EXPECT_EQ(Images(), 1u);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDump), 2);
}

// Ranks that leave stand still until all of their images count.
class LeavingTogetherTest : public DumpedTogetherTest {
 protected:
  void Begin() {
    StartController();
    AddNodes({"a", "b"});
    job_ = Submit(Batch(2));
    Settle();
    ASSERT_TRUE(engine_->Vacate(kRoot, job_, Tier::kShared).ok());
    Settle();
  }
};

TEST_F(LeavingTogetherTest, EachPassesOneBarrier) {
  Begin();
  EXPECT_EQ(Passed(), 2);
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kPassBarrier).pass_barrier().barrier(), v1::BARRIER_LEAVE);
  EXPECT_FALSE(cluster_.Last(v1::ToAgent::kDump).dump().together());
  EXPECT_EQ(Images(), 1u);
}

TEST_F(LeavingTogetherTest, NoneLeavesBeforeAllCount) {
  cluster_.slow_commit = {"b"};
  Begin();
  EXPECT_EQ(Passed(), 0);
  EXPECT_EQ(State(job_), JobState::kCommitting);
  EXPECT_EQ(cluster_.In(job_, v1::PREPARED), 2);
}

TEST_F(LeavingTogetherTest, OneWhoseAgentDiedIsDumpedAgainWhileTheOthersWait) {
  cluster_.slow_commit = {"b"};
  Begin();
  cluster_.slow_commit = {};
  cluster_.Restart("b");
  Settle(20);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDump), 3);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kRestore), 2);
}

TEST_F(LeavingTogetherTest, NoneIsLetGoWhileAnAgentIsAway) {
  cluster_.slow_commit = {"b"};
  Begin();
  cluster_.Disconnect("a");
  cluster_.slow_commit = {};
  Settle();
  EXPECT_EQ(Passed(), 0);
  cluster_.Connect("a");
  Settle(20);
  EXPECT_EQ(Images(), 1u);
}

TEST_F(LeavingTogetherTest, IfOneCannotCountAllRunOn) {
  cluster_.fail_commit = {"b"};
  Begin();
  Settle(60);
  EXPECT_EQ(Passed(), 0);
  EXPECT_EQ(cluster_.Running(job_), 2);
  EXPECT_EQ(Images(), 0u);
  EXPECT_EQ(Job(job_).preemptions, 0);
}

TEST_F(LeavingTogetherTest, OneThatRanOnAndEndedIsAsItsImageSays) {
  cluster_.slow_leave = {"b"};
  Begin();
  ASSERT_EQ(cluster_.In(job_, v1::PREPARED), 1);
  cluster_.Exit(job_, 1, 143);
  Settle();
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kRestore), 2);
}

TEST_F(LeavingTogetherTest, SoIsOneWhoseEndNobodySaw) {
  cluster_.slow_leave = {"b"};
  Begin();
  cluster_.Vanish(job_, 1);
  Settle();
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kRestore), 2);
  EXPECT_EQ(Job(job_).restarts, 0);
}

TEST_F(LeavingTogetherTest, AndOneThatEndsWhileTheOthersWait) {
  cluster_.slow_leave = {"a", "b"};
  Begin();
  ASSERT_EQ(cluster_.In(job_, v1::PREPARED), 2);
  cluster_.Exit(job_, 1, 1);
  cluster_.slow_leave = {};
  Settle();
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kRestore), 2);
  EXPECT_EQ(Job(job_).restarts, 0);
}

TEST_F(LeavingTogetherTest, ANewControllerHearsOfAllBeforeItJudgesOneThatEnded) {
  cluster_.slow_leave = {"b"};
  Begin();
  cluster_.Disconnect("a");
  cluster_.Disconnect("b");
  StartController();
  cluster_.Exit(job_, 1, 143);
  cluster_.Connect("b");
  Settle();
  EXPECT_EQ(State(job_), JobState::kCommitting);
  cluster_.Connect("a");
  Settle(20);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kRestore), 2);
}

TEST_F(LeavingTogetherTest, TwoThatRanOnHaveMetSince) {
  cluster_.slow_leave = {"a", "b"};
  Begin();
  cluster_.RunOn("a");
  cluster_.RunOn("b");
  Settle();
  EXPECT_EQ(Images(), 0u);
  EXPECT_EQ(cluster_.Running(job_), 2);
}

TEST_F(LeavingTogetherTest, WhoFollowsOneThatHasLeftWaitsForNobody) {
  cluster_.no_barriers = {"a"};
  cluster_.slow_commit = {"b"};
  Begin();
  ASSERT_EQ(cluster_.In(job_, v1::CHECKPOINTED), 1);
  cluster_.slow_commit = {};
  cluster_.Restart("b");
  Settle(20);
  EXPECT_FALSE(cluster_.Last(v1::ToAgent::kDump).dump().leaves_together());
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kRestore), 2);
}

TEST_F(LeavingTogetherTest, ThoseOfAnEarlierVersionLeaveAtOnce) {
  cluster_.no_barriers = {"a", "b"};
  Begin();
  EXPECT_EQ(Passed(), 0);
  EXPECT_EQ(Images(), 1u);
}

}  // namespace
}  // namespace siding
