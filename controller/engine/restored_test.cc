// A copy of the journal was put back: the world has gone on since.
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

// Until it is copied back, it is a journal like any other.
class CopiedJournal final : public JournalOnTop {
 public:
  absl::Status Append(const std::vector<Event>& events) override {
    for (const Event& event : events) {
      if (std::holds_alternative<JournalRestored>(event.body)) restored_ = 0;
    }
    return JournalOnTop::Append(events);
  }
  int64_t restored() const override { return restored_; }
  std::unique_ptr<Journal> Copy() {
    auto copy = std::make_unique<CopiedJournal>();
    std::vector<Event> events;
    EXPECT_TRUE(Replay([&](const Event& event) { events.push_back(event); }).ok());
    EXPECT_TRUE(copy->Append(events).ok());
    copy->restored_ = static_cast<int64_t>(events.size());
    return copy;
  }

 private:
  int64_t restored_ = 0;
};

class RestoredTest : public EngineTest {
 protected:
  RestoredTest() {
    journal_ = std::make_unique<CopiedJournal>();
    StartController();
    AddNodes({"a", "b"});
  }
  void TakeCopy() { copy_ = static_cast<CopiedJournal*>(journal_.get())->Copy(); }
  void PutBack(std::initializer_list<const char*> nodes = {"a", "b"}) {
    journal_ = std::move(copy_);
    StartController();
    for (const char* node : nodes) cluster_.Connect(node);
    Settle(20);
  }
  // A start after the one that is known, somewhere else than it really is.
  void Claim(JobId job, const char* node) {
    v1::FromAgent message;
    message.mutable_report()->mutable_task()->set_job(job.value());
    message.mutable_report()->mutable_task()->set_incarnation(99);
    message.mutable_report()->set_phase(v1::RUNNING);
    engine_->OnMessage(NodeId(node), message);
    Settle();
  }
  std::unique_ptr<Journal> copy_;
};

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
  // Nobody remembers that the first one ended: it was told to be forgotten.
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
