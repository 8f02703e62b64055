// A journal that cannot be written for a while.
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

class OutageTest : public EngineTest {
 protected:
  OutageTest() {
    journal_.reset(disk_);
    StartController();
    AddNodes({"a"});
  }
  std::string ErrorOfSubmitting() { return std::string(engine_->Submit(kAda, Batch()).status().message()); }
  size_t Jobs() {
    size_t jobs = 0;
    engine_->Read([&](const ClusterState& state) { jobs = state.jobs.size(); });
    return jobs;
  }
  // Reports come with heartbeats.
  void Beat() {
    cluster_.Heartbeat("a");
    Settle(5);
  }

  FullJournal* const disk_ = new FullJournal;
};

TEST_F(OutageTest, ARequestIsRefusedAndSaysWhy) {
  disk_->full = true;
  EXPECT_THAT(ErrorOfSubmitting(), HasSubstr("disk is full; nothing was changed"));
}

TEST_F(OutageTest, WhatWasRefusedIsNotShown) {
  disk_->full = true;
  ErrorOfSubmitting();
  ErrorOfSubmitting();
  EXPECT_EQ(Jobs(), 0u);
}

TEST_F(OutageTest, ItGoesOnWhenThereIsRoom) {
  disk_->full = true;
  ErrorOfSubmitting();
  disk_->full = false;
  Settle();
  const JobId job = Submit(Batch());
  Settle();
  EXPECT_EQ(job, JobId(1));
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(OutageTest, WhatIsObservedMeanwhileIsNotLost) {
  const JobId job = Submit(Batch());
  Settle();
  disk_->full = true;
  cluster_.Exit(job, 0, 0);
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  disk_->full = false;
  Beat();
  EXPECT_EQ(State(job), JobState::kDone);
}

TEST_F(OutageTest, NothingIsActedOnThatIsNotRecorded) {
  const JobId victim = Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  disk_->full = true;
  EXPECT_FALSE(engine_->Submit(kBob, OnDemand(1)).ok());
  EXPECT_FALSE(engine_->Vacate(kAda, victim, Tier::kShared).ok());
  Settle();
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDump), 0);
  EXPECT_EQ(State(victim), JobState::kRunning);
}

// Its command was held back with the event, so it is sent again.
TEST_F(OutageTest, AnOrderThatWasTakenBackCanBeGivenAgain) {
  const JobId victim = Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  disk_->full = true;
  EXPECT_FALSE(engine_->Vacate(kAda, victim, Tier::kShared).ok());
  disk_->full = false;
  Beat();
  EXPECT_TRUE(engine_->Vacate(kAda, victim, Tier::kShared).ok());
  Settle();
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDump), 1);
}

class NotesTest : public OutageTest {
 protected:
  NotesTest() {
    job_ = Submit(Batch());
    Settle();
    cluster_.Note(job_, "first");
  }
  std::vector<std::string> Notes() {
    std::vector<std::string> notes;
    for (const Event& event : engine_->EventsAfter(0, 1000, 0s)) {
      if (const auto* noted = std::get_if<Noted>(&event.body)) notes.push_back(noted->text);
    }
    return notes;
  }
  JobId job_;
};

TEST_F(NotesTest, OneThatWasTakenBackIsTakenAgain) {
  disk_->full = true;
  cluster_.Note(job_, "second");
  disk_->full = false;
  Beat();
  EXPECT_EQ(Notes(), (std::vector<std::string>{"rank 0 on a: first", "rank 0 on a: second"}));
}

TEST_F(NotesTest, OneThatWasMadeWhileNobodyListenedIsTakenLater) {
  cluster_.Disconnect("a");
  cluster_.Note(job_, "second");
  cluster_.Connect("a");
  EXPECT_EQ(Notes().size(), 2u);
}

TEST_F(NotesTest, ANewControllerTakesNoneTwice) {
  StartController();
  cluster_.Connect("a");
  EXPECT_EQ(Notes().size(), 1u);
}

TEST_F(OutageTest, AVerificationThatWasTakenBackIsNotWaitedFor) {
  const JobId job = Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  const auto image = engine_->Checkpoint(kAda, job, Tier::kShared);
  Settle();
  int answers = 0;
  const auto verify = [&] { return engine_->VerifyCheckpoint(kAda, *image, [&](auto) { ++answers; }); };
  disk_->full = true;
  ASSERT_FALSE(verify().ok());
  disk_->full = false;
  Beat();
  ASSERT_TRUE(verify().ok());
  cluster_.Run();
  EXPECT_EQ(answers, 1);
}

TEST_F(OutageTest, AnAgentIsTakenInWhenItIsOver) {
  disk_->full = true;
  ErrorOfSubmitting();
  cluster_.Disconnect("a");
  EXPECT_TRUE(absl::IsUnavailable(engine_->OnConnected(NodeId("a"), {})));
  disk_->full = false;
  Settle();
  cluster_.Connect("a");
  const JobId job = Submit(Batch());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(OutageTest, AWaitingJobIsPlacedWhenItIsOver) {
  const JobId first = Submit(Batch()), second = Submit(Batch());
  Settle();
  ASSERT_EQ(State(second), JobState::kPending);
  disk_->full = true;
  cluster_.Exit(first, 0, 0);
  Settle();
  disk_->full = false;
  Beat();
  EXPECT_EQ(State(second), JobState::kRunning);
}

}  // namespace
}  // namespace siding
