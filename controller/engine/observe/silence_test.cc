// Agents that hold their connections and say nothing.
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

class SilenceTest : public EngineTest {
 protected:
  SilenceTest() {
    AddNodes({"a", "b"});
    engine_->SetSilence(10s);
  }
  // Only these send heartbeats.
  void Pass(int seconds, std::initializer_list<const char*> heard = {"b"}) {
    for (int i = 0; i < seconds; ++i) {
      for (const char* name : heard) cluster_.Heartbeat(name);
      Settle(1);
    }
  }
  bool IsSilent(const std::string& node) {
    bool silent = false;
    engine_->Read([&](const ClusterState& state) { silent = state.observed_nodes.at(NodeId(node)).silent; });
    return silent;
  }
  std::vector<NodeId> NodesOf(JobId job) { return Job(job).nodes; }
};

TEST_F(SilenceTest, ANodeIsSilentWhenItsHeartbeatsAreMissing) {
  Pass(8);
  EXPECT_FALSE(IsSilent("a"));
  Pass(4);
  EXPECT_TRUE(IsSilent("a"));
  EXPECT_FALSE(IsSilent("b"));
}

TEST_F(SilenceTest, WhereNobodySaysHowLongNoneIs) {
  engine_->SetSilence(0s);
  Pass(1000);
  EXPECT_FALSE(IsSilent("a"));
}

TEST_F(SilenceTest, NothingNewIsStartedThere) {
  Pass(12);
  const JobId first = Submit(Batch()), second = Submit(Batch());
  Pass(3);
  EXPECT_EQ(NodesOf(first), std::vector{NodeId("b")});
  EXPECT_EQ(State(second), JobState::kPending);
  EXPECT_THAT(engine_->WhyWaits(Job(second)), HasSubstr("waits for"));
  Pass(3, {"a", "b"});
  EXPECT_EQ(NodesOf(second), std::vector{NodeId("a")});
}

TEST_F(SilenceTest, ItIsPlannedWithout) {
  Pass(12);
  EXPECT_FALSE(engine_->DryRun(kBob, OnDemand(2))->feasible);
  Pass(1, {"a", "b"});
  EXPECT_TRUE(engine_->DryRun(kBob, OnDemand(2))->feasible);
}

TEST_F(SilenceTest, WhatRunsThereIsNotGivenUp) {
  const JobId first = Submit(Batch()), second = Submit(Batch());
  Settle();
  Pass(60);
  ASSERT_TRUE(IsSilent("a"));
  for (const JobId job : {first, second}) {
    EXPECT_EQ(State(job), JobState::kRunning);
    EXPECT_EQ(Job(job).incarnation, 1);
  }
  Pass(3, {"a", "b"});
  for (const JobId job : {first, second}) EXPECT_EQ(Job(job).incarnation, 1);
}

TEST_F(SilenceTest, ItsJobsSayForWhomTheyWait) {
  const JobId job = Submit(Batch(2));
  Settle();
  Pass(12);
  EXPECT_THAT(engine_->WhyWaits(Job(job)), HasSubstr("node a, whose agent says nothing since"));
}

TEST_F(SilenceTest, OrdersForWhatRunsThereAreSent) {
  const JobId job = Submit(Batch(2));
  Settle();
  Pass(12);
  ASSERT_TRUE(engine_->Kill(kAda, job).ok());
  Pass(3);
  EXPECT_EQ(State(job), JobState::kCancelled);
}

TEST_F(SilenceTest, OtherMessagesAreNoHeartbeats) {
  for (int i = 0; i < 12; ++i) {
    cluster_.Heartbeat("b");
    v1::FromAgent message;
    message.mutable_progress()->mutable_task()->set_job(1);
    engine_->OnMessage(NodeId("a"), message);
    Settle(1);
  }
  EXPECT_TRUE(IsSilent("a"));
}

TEST_F(SilenceTest, AControllerThatStoodStillHasHeardNobody) {
  Pass(3, {"a", "b"});
  clock_.Advance(100s);
  engine_->Tick();
  EXPECT_FALSE(IsSilent("a"));
  Pass(8, {});
  EXPECT_FALSE(IsSilent("a"));
  Pass(4, {});
  EXPECT_TRUE(IsSilent("a"));
}

TEST_F(SilenceTest, NobodyWaitsForItsAnswers) {
  const JobId job = Submit(Batch(2));
  Settle();
  const auto checkpoint = engine_->Checkpoint(kAda, job, Tier::kLocal);
  ASSERT_TRUE(checkpoint.ok());
  Settle();
  std::map<int, v1::OpResult> answers;
  ASSERT_TRUE(
      engine_->VerifyCheckpoint(kAda, *checkpoint, [&](const auto& results) { answers = results; }).ok());
  cluster_.LoseQueue();
  Pass(12, {});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_THAT(answers[0].message(), HasSubstr("is silent and has not answered"));
  EXPECT_EQ(engine_->VerifyCheckpoint(kAda, *checkpoint, [](const auto&) {}).code(),
            absl::StatusCode::kUnavailable);
}

// Its connection lives: it may carry out what it was told.
TEST_F(SilenceTest, ItIsNotLostYet) {
  Pass(12);
  EXPECT_THAT(std::string(engine_->Lose(kRoot, NodeId("a")).message()),
              HasSubstr("is silent, but its agent"));
  cluster_.Disconnect("a");
  EXPECT_TRUE(engine_->Lose(kRoot, NodeId("a")).ok());
}

TEST_F(SilenceTest, ANewConnectionIsHeard) {
  Pass(12);
  cluster_.Disconnect("a");
  EXPECT_FALSE(IsSilent("a"));
  cluster_.Connect("a");
  const JobId job = Submit(Batch(2));
  Pass(3, {"a", "b"});
  EXPECT_EQ(State(job), JobState::kRunning);
}

}  // namespace
}  // namespace siding
