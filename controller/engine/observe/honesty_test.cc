// Agents that say more than they know: each may speak for its own node.
#include "controller/engine/engine_fixture.h"
#include "controller/engine/state/predicates.h"

namespace siding {
namespace {

// A job on node a; b's agent is dishonest.
class HonestyTest : public EngineTest {
 protected:
  HonestyTest() {
    AddNodes({"a", "b"});
    job_ = Submit(Batch(1));
    Settle();
    victim_ = Job(job_).nodes.front();
    liar_ = NodeId(victim_ == NodeId("a") ? "b" : "a");
  }
  v1::TaskReport Claim(v1::TaskPhase phase, int incarnation = 1) const {
    v1::TaskReport report;
    report.mutable_task()->set_job(job_.value());
    report.mutable_task()->set_incarnation(incarnation);
    report.set_phase(phase);
    return report;
  }
  void Say(const v1::TaskReport& report) {
    v1::FromAgent message;
    *message.mutable_report() = report;
    engine_->OnMessage(liar_, message);
    Settle();
  }
  void Answer(int64_t op, absl::StatusCode code) {
    v1::FromAgent message;
    message.mutable_result()->set_op(op);
    message.mutable_result()->set_code(static_cast<int>(code));
    engine_->OnMessage(liar_, message);
  }
  void ExpectUntouched() {
    EXPECT_EQ(State(job_), JobState::kRunning);
    EXPECT_EQ(Job(job_).nodes.front(), victim_);
    EXPECT_EQ(Job(job_).incarnation, 1);
  }
  int64_t Events() {
    int64_t seq = 0;
    engine_->Read([&](const ClusterState& state) { seq = state.last_seq; });
    return seq;
  }
  CheckpointId Checkpoint() {
    const auto id = engine_->Checkpoint(kAda, job_, Tier::kShared);
    EXPECT_TRUE(id.ok()) << id.status();
    Settle();
    return *id;
  }

  JobId job_;
  NodeId victim_, liar_;
};

TEST_F(HonestyTest, AnotherNodesTaskHasNotEnded) {
  Say(Claim(v1::EXITED));
  ExpectUntouched();
}

TEST_F(HonestyTest, AnotherNodesTaskIsNotLost) {
  Say(Claim(v1::LOST));
  ExpectUntouched();
}

TEST_F(HonestyTest, AnotherNodesTaskHasNoImage) {
  ASSERT_TRUE(engine_->Vacate(kAda, job_, Tier::kShared).ok());
  v1::TaskReport claim = Claim(v1::PREPARED);
  claim.set_checkpoint(Job(job_).current.checkpoint.value());
  v1::FromAgent message;
  *message.mutable_report() = claim;
  engine_->OnMessage(liar_, message);
  EXPECT_EQ(State(job_), JobState::kDumping);
}

TEST_F(HonestyTest, AJobOfOursIsNotStartedByACrowd) {
  v1::TaskReport claim = Claim(v1::RUNNING, 99);
  claim.mutable_spec()->set_nodes(1);  // as of a cluster manager that has no name
  Say(claim);
  ExpectUntouched();
}

TEST_F(HonestyTest, AJobOfOursIsNotWhereAnotherNodeSays) {
  Say(Claim(v1::RUNNING, 99));
  ExpectUntouched();
}

TEST_F(HonestyTest, NorWhereANodeThatConnectsSays) {
  v1::Hello hello;
  *hello.add_tasks() = Claim(v1::RUNNING, 99);
  engine_->OnDisconnected(liar_);
  ASSERT_TRUE(engine_->OnConnected(liar_, hello).ok());
  Settle();
  ExpectUntouched();
}

TEST_F(HonestyTest, AJobOfOursIsNotAClusterManagers) {
  v1::TaskReport claim = Claim(v1::RUNNING, 99);
  claim.mutable_spec()->set_nodes(1);
  claim.mutable_spec()->set_cluster_manager("slurm");
  Say(claim);
  ExpectUntouched();
}

TEST_F(HonestyTest, NothingIsNotedForAnothersJob) {
  const int64_t before = Events();
  v1::TaskReport claim = Claim(v1::RUNNING);
  claim.add_notes("your results are at http://example.org");
  Say(claim);
  EXPECT_EQ(Events(), before);
}

TEST_F(HonestyTest, WhatIsNotedHasAnEnd) {
  std::swap(liar_, victim_);
  const int64_t before = Events();
  v1::TaskReport claim = Claim(v1::RUNNING);
  for (int i = 0; i < 1000; ++i) claim.add_notes("again");
  Say(claim);
  EXPECT_EQ(Events(), before + 100);
}

TEST_F(HonestyTest, WhatGoesWrongIsSaidInFewWords) {
  std::swap(liar_, victim_);
  ASSERT_TRUE(engine_->Suspend(kAda, job_).ok());
  v1::TaskReport claim = Claim(v1::RUNNING);
  claim.set_failed_op(INT32_MAX);
  claim.set_error(std::string(100'000, 'x'));
  Say(claim);
  for (const Event& event : engine_->EventsAfter(0, 100, 0s)) EXPECT_LT(Describe(event).size(), 1200u);
}

TEST_F(HonestyTest, SoIsWhatIsWrongWithAnImage) {
  std::swap(liar_, victim_);
  Checkpoint();
  v1::FromAgent message;
  v1::DamagedImage& image = *message.mutable_heartbeat()->add_damaged();
  image.set_checkpoint("1.1");
  image.set_tier(v1::SHARED);
  image.set_problem(std::string(100'000, 'x'));
  engine_->OnMessage(liar_, message);
  engine_->Read([](const ClusterState& state) {
    const CheckpointRecord& checkpoint = state.checkpoints.at(CheckpointId("1.1"));
    EXPECT_EQ(checkpoint.state, CheckpointState::kDamaged);
    EXPECT_LT(checkpoint.note.size(), 1200u);
  });
}

TEST_F(HonestyTest, JobsThatCannotBeAreNotRecorded) {
  const int64_t before = Events();
  for (int64_t number : {INT64_MIN, int64_t{-1}, int64_t{0}, INT64_MAX}) {
    v1::TaskReport claim = Claim(v1::RUNNING);
    claim.mutable_task()->set_job(number);
    claim.mutable_spec()->set_nodes(1);
    claim.mutable_spec()->set_cluster_manager("slurm");
    Say(claim);
  }
  EXPECT_EQ(Events(), before);
  EXPECT_EQ(Submit(Batch(1)).value(), job_.value() + 1);
}

TEST_F(HonestyTest, AGangOfAnySizeIsCountedWithoutHarm) {
  v1::TaskReport claim = Claim(v1::RUNNING);
  claim.mutable_task()->set_job(4711);
  claim.mutable_task()->set_rank(INT32_MAX);
  claim.mutable_spec()->set_nodes(INT32_MAX);
  claim.mutable_spec()->set_cluster_manager("slurm");
  Say(claim);
  ExpectUntouched();
}

TEST_F(HonestyTest, AnotherNodesImageIsNotVerified) {
  const CheckpointId checkpoint = Checkpoint();
  std::map<int, v1::OpResult> answers;
  ASSERT_TRUE(engine_->VerifyCheckpoint(kAda, checkpoint, [&](auto by_rank) { answers = by_rank; }).ok());
  cluster_.Step();
  const int64_t op = cluster_.Last(v1::ToAgent::kVerify).op();
  EXPECT_EQ(answers.at(0).code(), 0);  // the node's own answer
  ASSERT_TRUE(engine_->VerifyCheckpoint(kAda, checkpoint, [&](auto by_rank) { answers = by_rank; }).ok());
  answers.clear();
  Answer(op + 1, absl::StatusCode::kDataLoss);
  EXPECT_TRUE(answers.empty());
  cluster_.Run();
  EXPECT_EQ(answers.at(0).code(), 0);
}

TEST_F(HonestyTest, AnotherNodesImageIsNotDeleted) {
  const CheckpointId checkpoint = Checkpoint();
  Checkpoint();  // the last one would not be deleted
  ASSERT_TRUE(engine_->DeleteCheckpoint(kAda, checkpoint).ok());
  clock_.Advance(2s);
  engine_->Tick();  // the order waits to be carried out
  const auto state = [&] {
    std::string text = "gone";
    engine_->Read([&](const ClusterState& s) {
      if (s.checkpoints.contains(checkpoint)) text = ToString(s.checkpoints.at(checkpoint).state);
    });
    return text;
  };
  for (int64_t op = 0; op < 10; ++op)
    Answer(ToMicros(FromMicros(1'700'000'000'000'000)) + op, absl::StatusCode::kOk);
  EXPECT_EQ(state(), "deleted");
  Settle();
  EXPECT_EQ(state(), "gone");
}

TEST_F(HonestyTest, AnothersCheckpointIsNotThatOfAManagedJob) {
  const CheckpointId checkpoint = Checkpoint();
  v1::TaskReport claim = Claim(v1::RESTORING);
  claim.mutable_task()->set_job(4711);
  claim.set_checkpoint(checkpoint.value());
  claim.mutable_spec()->set_nodes(1);
  claim.mutable_spec()->mutable_per_node()->set_slots(1);
  claim.mutable_spec()->set_cluster_manager("slurm");
  Say(claim);
  claim.set_phase(v1::RESTORE_FAILED);
  claim.set_image_damaged(true);
  Say(claim);
  std::string state;
  engine_->Read([&](const ClusterState& s) { state = ToString(s.checkpoints.at(checkpoint).state); });
  EXPECT_EQ(state, "good");
}

TEST(WithShortTexts, NoCharacterIsCutThrough) {
  v1::TaskReport report;
  report.set_error(std::string(999, 'x') + "\xC3\xA9");
  EXPECT_EQ(WithShortTexts(report).error(), std::string(999, 'x') + "\xEF\xBF\xBD");
}

}  // namespace
}  // namespace siding
