// Events of forgotten jobs leave the journal, and its replay stays the same.
#include "controller/journal/journal_fixture.h"

namespace siding {
namespace {

// A journal of jobs that were submitted and cancelled, ten at a time, and then perhaps forgotten.
class CompactionTest : public JournalTest {
 protected:
  void Append(JobId job, EventBody body) {
    const Event event{++last_seq_, FromMicros(last_seq_), job, std::move(body)};
    last_job_ = std::max(last_job_, job);
    ASSERT_TRUE(journal_->Append({event}).ok());
  }
  void Run(int64_t job, const std::string& note = "n") {
    Append(JobId(job), JobSubmitted{});
    Append(JobId(job), Noted{note});
    JobMoved move;
    move.event = JobEvent::kCancelled;
    Append(JobId(job), move);
  }
  void Forget(std::vector<JobId> jobs) { Append(JobId(), JobsForgotten{std::move(jobs), last_job_, {}}); }
  void CompactAll() {
    for (bool more = true; more;) {
      const auto done = journal_->Compact();
      ASSERT_TRUE(done.ok()) << done.status();
      more = *done;
    }
  }
  void Reopen() {
    journal_.reset();
    auto journal = OpenSqliteJournal(path_);
    ASSERT_TRUE(journal.ok()) << journal.status();
    journal_ = *std::move(journal);
  }
  int64_t Size() const { return static_cast<int64_t>(std::filesystem::file_size(path_)); }

  int64_t last_seq_ = 0;
  JobId last_job_;
  std::unique_ptr<Journal> journal_ = *OpenSqliteJournal(path_);
};

TEST_F(CompactionTest, EventsOfForgottenJobsAreRemoved) {
  Run(1);
  Run(2);
  Forget({JobId(1)});
  CompactAll();
  EXPECT_EQ(Count(*journal_), 3 + 1);
}

TEST_F(CompactionTest, NothingIsRemovedBeforeAJobIsForgotten) {
  Run(1);
  CompactAll();
  EXPECT_EQ(Count(*journal_), 3);
}

TEST_F(CompactionTest, ACompactedJournalGoesOn) {
  Run(1);
  Forget({JobId(1)});
  CompactAll();
  Reopen();
  EXPECT_TRUE(journal_->Append({Note(last_seq_ + 1)}).ok());
  EXPECT_EQ(Count(*journal_), 2);
}

TEST_F(CompactionTest, OfForgottenEventsTheNewestIsEnough) {
  Run(1);
  Forget({JobId(1)});
  Run(2);
  Forget({JobId(2)});
  CompactAll();
  EXPECT_EQ(Count(*journal_), 1);
}

TEST_F(CompactionTest, ANumberThatIsUsedAgainIsAnotherJob) {
  Run(1);
  Forget({JobId(1)});
  Run(1);
  CompactAll();
  EXPECT_EQ(Count(*journal_), 1 + 3);
}

TEST_F(CompactionTest, WhatARestartInterruptedIsGoneOnWith) {
  Run(1);
  Forget({JobId(1)});
  Reopen();
  ASSERT_EQ(Count(*journal_), 4);
  CompactAll();
  EXPECT_EQ(Count(*journal_), 1);
}

TEST_F(CompactionTest, OneThatIsCutShortIsWhole) {
  std::vector<JobId> jobs;
  for (int64_t job = 1; job <= 150; ++job) {
    Run(job);
    jobs.emplace_back(job);
  }
  Forget(jobs);
  ASSERT_TRUE(*journal_->Compact());
  Reopen();
  const int64_t left = Count(*journal_);
  EXPECT_GT(left, 1);
  EXPECT_LT(left, 451);
}

TEST_F(CompactionTest, AnEventThatNobodyRemovedIsMissed) {
  Run(1);
  Run(2);
  Forget({JobId(1)});
  CompactAll();
  ASSERT_TRUE(Sql("DELETE FROM events WHERE seq=5").ok());
  EXPECT_TRUE(absl::IsDataLoss(journal_->Replay([](const Event&) {})));
}

TEST_F(CompactionTest, TheFileBecomesSmaller) {
  const std::string long_note(100000, 'n');
  std::vector<JobId> jobs;
  for (int64_t job = 1; job <= 50; ++job) {
    Run(job, long_note);
    jobs.emplace_back(job);
  }
  Forget(jobs);
  Reopen();
  const int64_t before = Size();
  ASSERT_EQ(Count(*journal_), 151);
  CompactAll();
  Reopen();
  EXPECT_LT(Size(), before / 2);
}

// What a job is started with.
JobSpec LongSpec() {
  JobSpec spec;
  spec.name = "long";
  spec.command = {"/bin/true", std::string(100000, 'c')};
  spec.env = {{"E", std::string(100000, 'e')}};
  return spec;
}

class EndedContentsTest : public CompactionTest {
 protected:
  static std::vector<std::string> Beginning() {
    JobSpec spec = LongSpec();
    DropAllButCommand(spec);
    EXPECT_LT(spec.command.back().size(), kKeptCommand);
    return spec.command;
  }
  void End(int64_t job) {
    JobMoved move;
    move.event = JobEvent::kCancelled;
    Append(JobId(job), move);
  }
  JobSpec SpecInJournal(int64_t job) {
    JobSpec spec;
    EXPECT_TRUE(journal_
                    ->Replay([&](const Event& event) {
                      const auto* submitted = std::get_if<JobSubmitted>(&event.body);
                      if (submitted != nullptr && event.job == JobId(job)) spec = submitted->spec;
                    })
                    .ok());
    return spec;
  }
};

TEST_F(EndedContentsTest, OfAnEndedJobOnlyTheBeginningOfALongCommandStays) {
  Append(JobId(1), JobSubmitted{.spec = LongSpec()});
  End(1);
  CompactAll();
  EXPECT_EQ(SpecInJournal(1).command, Beginning());
  EXPECT_TRUE(SpecInJournal(1).env.empty());
  EXPECT_EQ(SpecInJournal(1).name, "long");
}

TEST_F(EndedContentsTest, AJobThatRunsKeepsItsCommand) {
  Append(JobId(1), JobSubmitted{.spec = LongSpec()});
  End(2);
  CompactAll();
  EXPECT_EQ(SpecInJournal(1).command, LongSpec().command);
}

TEST_F(EndedContentsTest, AJobThatItsClusterManagerMayStartAgainKeepsIt) {
  JobSpec spec = LongSpec();
  spec.cluster_manager = "slurm";
  Append(JobId(1), JobSubmitted{.spec = spec});
  End(1);
  CompactAll();
  EXPECT_EQ(SpecInJournal(1).command, spec.command);
}

TEST_F(EndedContentsTest, ANumberThatIsUsedAgainIsAnotherJob) {
  Append(JobId(1), JobSubmitted{.spec = LongSpec()});
  End(1);
  Forget({JobId(1)});
  Append(JobId(1), JobSubmitted{.spec = LongSpec()});
  CompactAll();
  EXPECT_EQ(SpecInJournal(1).command, LongSpec().command);
}

TEST_F(EndedContentsTest, ARestartFindsWhatWasLeft) {
  Append(JobId(1), JobSubmitted{.spec = LongSpec()});
  End(1);
  Reopen();
  ASSERT_EQ(SpecInJournal(1).command, LongSpec().command);
  CompactAll();
  EXPECT_EQ(SpecInJournal(1).command, Beginning());
}

}  // namespace
}  // namespace siding
