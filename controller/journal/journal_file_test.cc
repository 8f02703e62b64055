// The file: its schema, copies of it, and what is refused instead of being opened.
#include <atomic>
#include <thread>

#include "controller/engine/state/cluster_state.h"
#include "controller/journal/check.h"
#include "controller/journal/copy.h"
#include "controller/journal/journal_fixture.h"
#include "controller/journal/lease.h"
#include "controller/journal/schema.h"

namespace siding {
namespace {

using testing::HasSubstr;

constexpr int64_t kGoldenEvents = 46;

// A journal that was written before there was a second schema.
class SchemaTest : public JournalTest {
 protected:
  SchemaTest() {
    std::ofstream(path_).flush();
    EXPECT_TRUE(Sql("PRAGMA journal_mode=WAL").ok());
    EXPECT_TRUE(Sql(*ReadFile(TESTDATA "/schema1.sql")).ok());
  }
  int64_t Ask(const std::string& path, const std::string& sql) {
    return *Database::Open(path, Database::Mode::kReadOnly)->Number(sql, -1);
  }
  ClusterState& Replayed() {
    auto journal = OpenSqliteJournal(path_);
    EXPECT_TRUE(journal.ok()) << journal.status();
    EXPECT_TRUE((*journal)->Replay([&](const Event& event) { Apply(state_, event); }).ok());
    return state_;
  }
  ClusterState state_;
};

TEST_F(SchemaTest, AnOldJournalGetsThePresentSchema) {
  ASSERT_TRUE(OpenSqliteJournal(path_).ok());
  EXPECT_EQ(Ask(path_, "SELECT value FROM meta WHERE key='schema'"), kJournalSchema);
}

TEST_F(SchemaTest, CopiesOfOldJournalsAreFoundWholeBeforeAndAfter) {
  for (const int64_t schema : {int64_t{1}, kJournalSchema}) {
    ASSERT_TRUE(Sql("PRAGMA journal_mode=DELETE").ok());
    const auto summary = CheckJournalCopy(path_);
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(summary->schema, schema);
    ASSERT_TRUE(OpenSqliteJournal(path_).ok());
  }
}

TEST_F(SchemaTest, AnOldJournalReplaysWhole) {
  EXPECT_EQ(Replayed().last_seq, kGoldenEvents);
  EXPECT_EQ(state_.jobs.size(), 8u);
}

TEST_F(SchemaTest, TheJobsOfAnOldJournalAreAsTheyWere) {
  const auto& jobs = Replayed().jobs;
  EXPECT_EQ(jobs.at(JobId(1)).state, JobState::kSuspended);
  EXPECT_EQ(jobs.at(JobId(2)).state, JobState::kFailed);
  EXPECT_EQ(jobs.at(JobId(3)).state, JobState::kDone);
  EXPECT_EQ(jobs.at(JobId(5)).reason, "asked for by ada");
  EXPECT_EQ(jobs.at(JobId(7)).state, JobState::kPending);
}

TEST_F(SchemaTest, AnOldJournalIsKeptAsItWas) {
  ASSERT_TRUE(OpenSqliteJournal(path_).ok());
  EXPECT_EQ(Ask(path_ + ".schema1", "SELECT value FROM meta WHERE key='schema'"), 1);
  EXPECT_EQ(Ask(path_ + ".schema1", "SELECT count(*) FROM events"), kGoldenEvents);
}

TEST_F(SchemaTest, AnOldJournalGoesOn) {
  auto journal = *OpenSqliteJournal(path_);
  EXPECT_TRUE(journal->Append({Note(kGoldenEvents + 1)}).ok());
  EXPECT_EQ(Count(*journal), kGoldenEvents + 1);
}

TEST_F(SchemaTest, AnOldJournalLearnsToShrink) {
  ASSERT_TRUE(OpenSqliteJournal(path_).ok());
  EXPECT_EQ(Ask(path_, "PRAGMA auto_vacuum"), 2);
}

TEST_F(SchemaTest, AMigrationThatFailsChangesNothing) {
  ASSERT_TRUE(Sql("INSERT INTO meta VALUES ('removed', 7)").ok());  // in the way of the migration
  EXPECT_FALSE(OpenSqliteJournal(path_).ok());
  EXPECT_EQ(Ask(path_, "SELECT value FROM meta WHERE key='schema'"), 1);
}

using FileTest = JournalTest;

TEST_F(FileTest, ANewJournalIsNobodyElsesToRead) {
  ASSERT_TRUE(OpenSqliteJournal(path_).ok());
  EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms(0600));
}

TEST_F(FileTest, WhatOneLeftWhoDiedMakingAJournalIsNotInTheWay) {
  std::ofstream(path_ + ".new") << "half";
  EXPECT_TRUE(OpenSqliteJournal(path_).ok());
}

TEST_F(FileTest, ANewerSchemaIsRefused) {
  Write(1);
  ASSERT_TRUE(Sql("UPDATE meta SET value=99 WHERE key='schema'").ok());
  EXPECT_THAT(std::string(OpenSqliteJournal(path_).status().message()), HasSubstr("newer siding"));
}

TEST_F(FileTest, ADatabaseThatIsNoJournalIsRefused) {
  std::ofstream(path_).flush();
  ASSERT_TRUE(Sql("CREATE TABLE friends (name TEXT)").ok());
  EXPECT_THAT(std::string(OpenSqliteJournal(path_).status().message()), HasSubstr("no journal"));
}

TEST_F(FileTest, AnEmptyFileIsDamage) {
  std::ofstream(path_).flush();
  EXPECT_TRUE(absl::IsDataLoss(OpenSqliteJournal(path_).status()));
}

TEST_F(FileTest, ALogWithoutItsJournalIsNotThrownAway) {
  for (const char* log : {"-wal", "-journal"}) {
    std::ofstream(path_ + log) << "frames";
    EXPECT_TRUE(absl::IsDataLoss(OpenSqliteJournal(path_).status()));
    EXPECT_TRUE(Exists(log));
    std::filesystem::remove(path_ + log);
  }
}

class CopyTest : public JournalTest {
 protected:
  CopyTest() { Write(3); }
  const std::string copy_ = folder_ + "/copy";
};

TEST_F(CopyTest, ACopyOpensAsAJournal) {
  ASSERT_TRUE(CopyJournal(path_, copy_).ok());
  EXPECT_EQ(Count(**OpenSqliteJournal(copy_)), 3);
}

// Agents refuse those that are older than what they have seen.
TEST_F(CopyTest, ACopyThatIsPutBackHasANewerEpochThanAnyJournalBefore) {
  ASSERT_TRUE(CopyJournal(path_, copy_).ok());
  const auto epoch_of_next = [this] {
    const auto lease = *Lease::Open({.journal = path_});
    lease->Look();
    EXPECT_TRUE(OpenSqliteJournal(path_, *lease).ok());
    return lease->epoch();
  };
  epoch_of_next();
  const int64_t newest = epoch_of_next();
  for (const char* log : {"-wal", "-shm"}) std::filesystem::remove(path_ + log);
  std::filesystem::rename(copy_, path_);
  EXPECT_GT(epoch_of_next(), newest);
}

// Larger than what is copied in one step.
class LargeCopyTest : public CopyTest {
 protected:
  LargeCopyTest() {
    Event large = Note(4);
    large.body = Noted{std::string(16 << 20, 'n')};
    EXPECT_TRUE(journal_->Append({large}).ok());
  }
  std::unique_ptr<Journal> journal_ = *OpenSqliteJournal(path_);
};

TEST_F(LargeCopyTest, ACopyIsOfOneMomentWhileOthersAppend) {
  int64_t last = 4;
  const absl::Status status =
      CopyJournal(path_, copy_, [&](int64_t, int64_t) { return journal_->Append({Note(++last)}).ok(); });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_GT(last, 4);
  EXPECT_EQ(Count(**OpenSqliteJournal(copy_)), 4);
}

TEST_F(LargeCopyTest, ACopyThatIsNotWantedLeavesNothing) {
  EXPECT_TRUE(absl::IsCancelled(CopyJournal(path_, copy_, [](int64_t, int64_t) { return false; })));
  EXPECT_FALSE(std::filesystem::exists(copy_ + ".part"));
}

// Nothing can be committed while another connection reads.
class SharedCopyTest : public CopyTest {
 protected:
  SharedCopyTest() {
    lease_->Look();
    journal_ = *OpenSqliteJournal(path_, *lease_);
    Event large = Note(++last_);
    large.body = Noted{std::string(4 << 20, 'n')};
    EXPECT_TRUE(journal_->Append({large}).ok());
  }
  bool AppendOne() { return journal_->Append({Note(++last_)}).ok(); }

  std::unique_ptr<Lease> lease_ = *Lease::Open({.journal = path_, .shared = true});
  std::unique_ptr<Journal> journal_;
  int64_t last_ = 3;
};

TEST_F(SharedCopyTest, AppendsDoNotWaitUntilACopyIsWholeAndAreInIt) {
  const absl::Status status = journal_->Copy(copy_, [&](int64_t, int64_t) { return AppendOne(); });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_GT(last_, 10);
  ASSERT_TRUE(CheckJournalCopy(copy_).ok());
  EXPECT_EQ(Count(**OpenSqliteJournal(copy_)), last_);
}

TEST_F(SharedCopyTest, ACopyIsWholeWhileAnotherThreadAppends) {
  std::atomic<bool> copied = false;
  bool all = true;
  std::thread appends([&] {
    while (!copied) all &= AppendOne();
  });
  const absl::Status status = journal_->Copy(copy_, nullptr);
  copied = true;
  appends.join();
  EXPECT_TRUE(all);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_TRUE(CheckJournalCopy(copy_).ok());
  const int64_t events = Count(**OpenSqliteJournal(copy_));
  EXPECT_TRUE(events >= 4 && events <= last_) << events;
}

TEST_F(SharedCopyTest, AJournalThatWasCopiedGoesOn) {
  ASSERT_TRUE(journal_->Copy(copy_, nullptr).ok());
  EXPECT_TRUE(AppendOne());
  EXPECT_EQ(Count(*journal_), last_);
}

TEST_F(CopyTest, ACopyNeedsNoFileBesideIt) {
  ASSERT_TRUE(CopyJournal(path_, copy_).ok());
  EXPECT_FALSE(std::filesystem::exists(copy_ + "-wal"));
  auto db = Database::Open(copy_, Database::Mode::kImmutable);
  EXPECT_EQ(*db->Number("SELECT count(*) FROM events", 0), 3);
}

// SQLite would take that log for the copy's.
TEST_F(CopyTest, ACopyBesideAnotherJournalsLogIsRefused) {
  ASSERT_TRUE(CopyJournal(path_, copy_).ok());
  for (const std::string& log : {copy_ + "-wal", copy_ + "-journal"}) {
    std::ofstream(log) << "frames";
    EXPECT_THAT(std::string(OpenSqliteJournal(copy_).status().message()), HasSubstr("Remove " + log));
    std::filesystem::remove(log);
  }
}

TEST_F(CopyTest, ACopyIsOfTheSameCluster) {
  const int64_t cluster = (*OpenSqliteJournal(path_))->cluster();
  EXPECT_GT(cluster, 0);
  EXPECT_EQ((*OpenSqliteJournal(path_))->cluster(), cluster);
  ASSERT_TRUE(CopyJournal(path_, copy_).ok());
  EXPECT_EQ((*OpenSqliteJournal(copy_))->cluster(), cluster);
  EXPECT_NE((*OpenSqliteJournal(path_ + ".other"))->cluster(), cluster);
}

// Tasks that were started since it was made have the number that was drawn then.
TEST_F(CopyTest, ACopyOfBeforeThereWereClustersIsOfNone) {
  ASSERT_TRUE(CopyJournal(path_, copy_).ok());
  {
    auto db = Database::Open(copy_, Database::Mode::kReadWrite);
    ASSERT_TRUE(db.ok()) << db.status();
    ASSERT_TRUE(db->Run("DELETE FROM meta WHERE key='cluster'").ok());
  }
  for (int i = 0; i < 2; ++i) {
    const auto journal = OpenSqliteJournal(copy_);
    ASSERT_TRUE(journal.ok()) << journal.status();
    EXPECT_EQ((*journal)->cluster(), 0);
    ASSERT_TRUE((*journal)->Append({{4 + i, Time{}, JobId(), JournalRestored{3, JobId(100)}}}).ok());
  }
}

TEST_F(CopyTest, ACopyWhoseTakingOverWasInterruptedIsTakenOver) {
  ASSERT_TRUE(CopyJournal(path_, copy_).ok());
  for (const std::string& left : {copy_ + ".new", copy_ + ".new-journal"}) std::ofstream(left) << "half";
  const auto journal = OpenSqliteJournal(copy_);
  ASSERT_TRUE(journal.ok()) << journal.status();
  EXPECT_EQ((*journal)->restored(), 3);
}

}  // namespace
}  // namespace siding
