// A copy of the journal was put back: jobs have moved since it was made.
#include "controller/engine/observe/copy_fixture.h"

namespace siding {
namespace {

TEST_F(RestoredTest, AJobThatRunsAsItDidGoesOn) {
  const JobId job = Submit(Batch());
  Settle();
  TakeCopy();
  PutBack();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).incarnation, 1);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kLaunch), 1);
}

TEST_F(RestoredTest, AJobThatWasMovedSinceIsFoundWhereItIs) {
  const JobId job = Submit(Batch());
  Settle();
  TakeCopy();
  ASSERT_TRUE(engine_->Migrate(kAda, job, {NodeId("b")}).ok());
  Settle(5);
  ASSERT_EQ(Job(job).nodes[0], NodeId("b"));
  PutBack();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).nodes[0], NodeId("b"));
  EXPECT_EQ(Job(job).incarnation, 2);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kLaunch), 1);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kKill), 0);
}

// ---- A gang that was moved since, to c and d. ----

class MovedGang : public RestoredTest {
 protected:
  MovedGang() {
    AddNodes({"c", "d"});
    gang_ = Submit(Batch(2));
    Settle();
    TakeCopy();
    EXPECT_TRUE(engine_->Migrate(kAda, gang_, {NodeId("c"), NodeId("d")}).ok());
    Settle(5);
    EXPECT_EQ(cluster_.Running(gang_), 2);
  }
  JobId gang_;
};

TEST_F(MovedGang, IsStartedAgainUnderANumberThatIsNew) {
  PutBack({"a", "b", "c"});
  EXPECT_EQ(State(gang_), JobState::kRunning);
  EXPECT_GT(Job(gang_).incarnation, 2);
}

TEST_F(MovedGang, IsEndedWhereItWas) {
  PutBack({"a", "b", "c"});
  cluster_.Connect("d");
  Settle();
  EXPECT_EQ(cluster_.Running(gang_), 2);
}

TEST_F(MovedGang, IsNotStartedAgainBesideARankThatLives) {
  journal_ = std::move(copy_);
  StartController();
  for (const char* node : {"a", "b", "c"}) cluster_.Connect(node);
  Settle(14);
  ASSERT_EQ(State(gang_), JobState::kPending);
  clock_.Advance(1s);
  engine_->Tick();  // the rank is told to end, and has not ended
  EXPECT_EQ(State(gang_), JobState::kPending);
}

TEST_F(MovedGang, IsFoundWithARankThatHasEnded) {
  cluster_.Exit(gang_, 1, 0);
  Settle(1);
  PutBack({"a", "b", "c", "d"});
  EXPECT_EQ(State(gang_), JobState::kRunning);
  EXPECT_EQ(Job(gang_).incarnation, 2);
  EXPECT_EQ(Job(gang_).exited.size(), 1u);
}

TEST_F(RestoredTest, AJobThatWasStartedSinceIsNotStartedTwice) {
  const JobId first = Submit(Batch(2)), second = Submit(Batch());
  Settle();
  ASSERT_EQ(State(second), JobState::kPending);
  TakeCopy();
  for (int rank : {0, 1}) cluster_.Exit(first, rank, 0);
  Settle();
  ASSERT_EQ(State(second), JobState::kRunning);
  const int launched = cluster_.Count(v1::ToAgent::kLaunch);
  PutBack();
  EXPECT_EQ(State(second), JobState::kRunning);
  // No agent remembers that the first one ended: it was told to forget it.
  EXPECT_LE(cluster_.Count(v1::ToAgent::kLaunch), launched + 2);
}

TEST_F(RestoredTest, ANumberThatMayBeInUseIsNotGivenAgain) {
  Submit(Batch());
  TakeCopy();
  const JobId lost = Submit(Batch());
  Settle();
  PutBack();
  EXPECT_GT(Submit(Batch()), lost);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kKill), 0);
}

TEST_F(RestoredTest, WhenAllAreBackAgentsAreNotAskedAnyMore) {
  const JobId job = Submit(Batch());
  Settle();
  TakeCopy();
  PutBack();
  Claim(job, "b");
  EXPECT_EQ(Job(job).nodes[0], NodeId("a"));
}

TEST_F(RestoredTest, NorAboutAJobThatIsYounger) {
  Submit(Batch());
  TakeCopy();
  journal_ = std::move(copy_);
  StartController();
  cluster_.Connect("b");
  const JobId job = Submit(Batch());
  Claim(job, "b");
  EXPECT_EQ(State(job), JobState::kPending);
}

TEST_F(RestoredTest, AControllerThatDiesMeanwhileWaitsForThemAgain) {
  const JobId job = Submit(Batch());
  Settle();
  TakeCopy();
  ASSERT_TRUE(engine_->Migrate(kAda, job, {NodeId("b")}).ok());
  Settle(5);
  journal_ = std::move(copy_);
  StartController();
  clock_.Advance(10s);
  StartController();
  clock_.Advance(10s);
  cluster_.Connect("a");
  cluster_.Connect("b");
  Settle(20);
  EXPECT_EQ(Job(job).nodes[0], NodeId("b"));
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kKill), 0);
}

// An agent that has carried out an order of the same number would be taken to have carried out the new one.
TEST_F(RestoredTest, NumbersOfOrdersAndImagesAreNotGivenAgain) {
  const JobId job = Submit(Batch());
  Settle();
  TakeCopy();
  const auto before = engine_->Checkpoint(kAda, job, Tier::kShared);
  Settle();
  PutBack();
  const auto after = engine_->Checkpoint(kAda, job, Tier::kShared);
  Settle();
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_NE(*before, *after);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kCommit), 2);
}

TEST_F(RestoredTest, ThatItWasPutBackIsRecordedOnce) {
  Submit(Batch());
  TakeCopy();
  PutBack();
  StartController();
  int restored = 0;
  for (const Event& event : engine_->EventsAfter(0, 100, 0s)) restored += KindOf(event) == "restored";
  EXPECT_EQ(restored, 1);
}

}  // namespace
}  // namespace siding
