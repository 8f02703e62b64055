// Jobs that ended long ago are forgotten, and no record that is kept needs them.
#include <stdlib.h>

#include <filesystem>

#include "controller/engine/engine_fixture.h"
#include "controller/engine/state/state_text.h"
#include "controller/engine/state/trend_count.h"

namespace siding {
namespace {

class RetentionTest : public EngineTest {
 protected:
  RetentionTest() {
    AddNodes({"a", "b"});
    Keep(1h);
  }
  void Keep(Duration ended, int jobs = 1000) { engine_->SetRetention({ended, jobs}); }
  JobId EndedJob(int code = 0, int nodes = 1) {
    const JobId job = Submit(Batch(nodes));
    Settle();
    for (int rank = 0; rank < nodes; ++rank) cluster_.Exit(job, rank, code);
    Settle();
    return job;
  }
  void Pass(Duration time) {
    clock_.Advance(time);
    for (const char* node : {"a", "b"}) cluster_.Heartbeat(node);
    Settle(5);
  }
  bool Known(JobId id) {
    bool known = false;
    engine_->Read([&](const ClusterState& state) { known = state.jobs.contains(id); });
    return known;
  }
  Trends TrendsNow() {
    Trends trends;
    engine_->Read([&](const ClusterState& state) { trends = TrendsOf(state, clock_.Now()); });
    return trends;
  }
  Totals TotalsNow() {
    Totals totals;
    engine_->Read([&](const ClusterState& state) { totals = TotalsOf(state); });
    return totals;
  }
  std::string Text() {
    std::string text;
    engine_->Read([&](const ClusterState& state) { text = StateText(state); });
    return text;
  }
};

TEST_F(RetentionTest, AJobThatEndedLongAgoIsForgotten) {
  const JobId job = EndedJob();
  Pass(1h);
  EXPECT_FALSE(Known(job));
}

TEST_F(RetentionTest, OneThatEndedJustNowIsNot) {
  const JobId job = EndedJob();
  Pass(30min);
  EXPECT_TRUE(Known(job));
}

TEST_F(RetentionTest, OneThatRunsIsNot) {
  const JobId job = Submit(Batch());
  Settle();
  Pass(100h);
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(RetentionTest, TheOldestGoWhenThereAreTooMany) {
  Keep(1000h, 1);
  const JobId first = EndedJob(), second = EndedJob();
  EXPECT_FALSE(Known(first));
  EXPECT_TRUE(Known(second));
}

TEST_F(RetentionTest, NoNumberIsGivenTwice) {
  const JobId job = EndedJob();
  Pass(1h);
  ASSERT_FALSE(Known(job));
  EXPECT_EQ(Submit(Batch()).value(), job.value() + 1);
  StartController();
  EXPECT_EQ(Submit(Batch()).value(), job.value() + 2);
}

TEST_F(RetentionTest, ThatAJobHasBeenForgottenIsSaid) {
  const JobId job = EndedJob();
  Pass(1h);
  EXPECT_THAT(std::string(engine_->Kill(kAda, job).message()), HasSubstr("are forgotten"));
  EXPECT_EQ(engine_->Kill(kAda, JobId(99)).message(), "there is no job 99");
}

TEST_F(RetentionTest, ItIsRememberedThatAJobIsForgotten) {
  EndedJob();
  Pass(1h);
  const std::string before = Text();
  StartController();
  EXPECT_EQ(Text(), before);
}

TEST_F(RetentionTest, WhatItHasAddedUpToIsNotForgotten) {
  const JobId job = Submit(Batch());
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  cluster_.Exit(job, 0, 0);
  Settle();
  const Trends before = TrendsNow();
  const Totals totals = TotalsNow();
  ASSERT_THAT(before.days, testing::SizeIs(1));
  EXPECT_EQ(before.days.begin()->second.writes.at(Tier::kShared).images, 1);
  EXPECT_EQ(totals.actions.at(JobAction::kCheckpoint).done, 1);
  Pass(1h);
  ASSERT_FALSE(Known(job));
  EXPECT_EQ(TrendsNow(), before);
  EXPECT_EQ(TotalsNow(), totals);
  StartController();
  EXPECT_EQ(TrendsNow(), before);
  EXPECT_EQ(TotalsNow(), totals);
}

TEST_F(RetentionTest, ItsCheckpointsGoWithIt) {
  const JobId job = Submit(Batch());
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  cluster_.Exit(job, 0, 0);
  Settle();
  Pass(1h);
  EXPECT_FALSE(Known(job));
  engine_->Read([](const ClusterState& state) { EXPECT_TRUE(state.checkpoints.empty()); });
}

// The images of one that failed are kept for its owner, but not for ever.
TEST_F(RetentionTest, ImagesOfAFailedJobAreDeletedFirst) {
  policy_.keep_failed_images = 30min;
  engine_->SetPolicy(policy_);
  const JobId job = Submit(Batch());
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  cluster_.Exit(job, 0, 1);
  Settle();
  ASSERT_EQ(cluster_.Count(v1::ToAgent::kDelete), 0);
  Pass(1h);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDelete), 1);
  EXPECT_FALSE(Known(job));
}

TEST_F(RetentionTest, ThatAnImageWasDamagedStaysCounted) {
  const JobId job = Submit(Batch());
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  cluster_.FindDamaged("a", "1.1");
  cluster_.Exit(job, 0, 0);
  Settle();
  Pass(1h);
  ASSERT_FALSE(Known(job));
  engine_->Read([](const ClusterState& state) { EXPECT_EQ(state.forgotten.damaged_checkpoints, 1); });
}

TEST_F(RetentionTest, AJobIsKeptWhileAnImageOfItCannotBeDeleted) {
  const JobId job = Submit(Batch());
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kLocal).ok());
  Settle();
  cluster_.Exit(job, 0, 0);
  cluster_.Disconnect("a");
  clock_.Advance(2h);
  Settle(5);
  EXPECT_TRUE(Known(job));
  cluster_.Connect("a");
  Pass(1min);
  EXPECT_FALSE(Known(job));
}

// It may still have a task of it.
TEST_F(RetentionTest, AJobIsKeptWhileItsNodeIsAway) {
  const JobId job = EndedJob();
  cluster_.Disconnect("a");
  clock_.Advance(2h);
  Settle(5);
  EXPECT_TRUE(Known(job));
}

TEST_F(RetentionTest, ATaskThatOutlivedItsJobIsEndedBeforeTheJobIsForgotten) {
  const JobId job = Submit(Batch(2));
  Settle();
  cluster_.Disconnect("b");
  cluster_.Exit(job, 0, 1);
  clock_.Advance(2h);
  Settle(5);
  ASSERT_TRUE(Known(job));
  cluster_.Connect("b");
  Settle(5);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kKill), 1);
  EXPECT_FALSE(Known(job));
}

// It may be a user's work, and the journal may be wrong.
TEST_F(RetentionTest, ATaskOfAJobThatNobodyKnowsIsLeftAlone) {
  const JobId job = Submit(Batch());
  Settle();
  journal_ = NewMemoryJournal();
  StartController();
  AddNodes({"a", "b"});
  Settle(5);
  EXPECT_FALSE(Known(job));
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kKill), 0);
}

TEST_F(RetentionTest, ARequestIsKeptWhileItsNodeHoursCount) {
  const JobId request = Submit(OnDemand(1), kBob);
  Settle();
  cluster_.Exit(request, 0, 0);
  Settle();
  Pass(23h);
  EXPECT_TRUE(Known(request));
  Pass(1h);
  EXPECT_FALSE(Known(request));
}

TEST_F(RetentionTest, AJobIsKeptWhileAPlanSpeaksOfIt) {
  const JobId victim = Submit(Batch(2));
  Settle();
  JobSpec announced = OnDemand(2, 3h);
  announced.not_before = clock_.Now() + 179min;
  const JobId request = Submit(announced, kBob);
  Settle();
  ASSERT_FALSE(Job(request).plans.back().steps.empty());
  for (int rank : {0, 1}) cluster_.Exit(victim, rank, 0);
  Pass(2h);
  ASSERT_EQ(State(request), JobState::kPending);
  EXPECT_TRUE(Known(victim));
}

TEST_F(RetentionTest, WhatForgottenJobsAddUpToIsKept) {
  const JobId victim = Submit(Batch(2));
  Settle();
  const JobId request = Submit(OnDemand(2), kBob);
  Settle();
  for (int rank : {0, 1}) cluster_.Exit(request, rank, 0);
  Settle(5);
  for (int rank : {0, 1}) cluster_.Exit(victim, rank, 0);
  Settle();
  Pass(25h);
  ASSERT_FALSE(Known(request));
  ASSERT_FALSE(Known(victim));
  engine_->Read([](const ClusterState& state) {
    EXPECT_EQ(state.forgotten.met, 1);
    EXPECT_EQ(state.forgotten.preemptions, 1);
  });
}

class CompactedTest : public RetentionTest {
 protected:
  CompactedTest() : folder_(mkdtemp(name_)) {
    journal_ = *OpenSqliteJournal(folder_ + "/journal.db");
    StartController();
    AddNodes({"a", "b"});
    Keep(1h);
  }
  ~CompactedTest() override { std::filesystem::remove_all(folder_); }
  int64_t Events() {
    int64_t n = 0;
    EXPECT_TRUE(journal_->Replay([&](const Event&) { ++n; }).ok());
    return n;
  }
  char name_[32] = "/tmp/siding-retention-XXXXXX";
  const std::string folder_;
};

TEST_F(CompactedTest, ACompactedJournalReplaysToTheSameState) {
  const JobId running = Submit(Batch(1));
  for (int i = 0; i < 5; ++i) EndedJob(i % 2);
  ASSERT_TRUE(engine_->Checkpoint(kAda, running, Tier::kShared).ok());
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("b"), true).ok());
  Pass(1h);
  Settle(10);
  const int64_t events = Events();
  const std::string before = Text();
  engine_.reset();
  journal_.reset();
  journal_ = *OpenSqliteJournal(folder_ + "/journal.db");
  StartController();
  EXPECT_EQ(Text(), before);
  engine_->Read([&](const ClusterState& state) { EXPECT_LT(events, state.last_seq / 2); });
}

}  // namespace
}  // namespace siding
