#include "controller/journal/lease.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>

#include "common/files.h"
#include "common/patience_for_test.h"
#include "controller/journal/journal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::HasSubstr;
using Verdict = LeaseWatch::Verdict;

Event Note(int64_t seq) { return Event{seq, FromMicros(seq), JobId(1), Noted{"n"}}; }

// In both ways to write a journal.
class LeaseTest : public testing::TestWithParam<bool> {
 protected:
  LeaseTest() {
    char name[] = "/tmp/siding-lease-XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/journal.db";
  }
  ~LeaseTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Lease> Open() {
    return *Lease::Open({.journal = path_, .shared = GetParam(), .address = "head1:7433"});
  }
  // Takes over from a holder that lives, as if it had been silent. It may speak in between.
  std::unique_ptr<Journal> TakeOver(Lease& lease) {
    std::unique_ptr<Journal> taken;
    const auto takes = [&] {
      std::filesystem::resize_file(path_ + ".lease", 0);
      lease.Look();
      auto journal = OpenSqliteJournal(path_, lease);
      if (journal.ok()) taken = *std::move(journal);
      return taken != nullptr;
    };
    EXPECT_TRUE(Eventually(takes)) << "the lease to be taken over";
    return taken;
  }
  // Until the holder has spoken once more.
  void AwaitBeat() {
    const auto other = Open();
    other->Look();
    const int64_t beat = other->seen().beat;
    const auto spoken = [&] {
      other->Look();
      return other->seen().beat != beat;
    };
    ASSERT_TRUE(Eventually(spoken)) << "the holder to speak once more";
  }

  std::string folder_, path_;
};

INSTANTIATE_TEST_SUITE_P(Modes, LeaseTest, testing::Bool(),
                         [](const auto& shared) { return shared.param ? "Shared" : "Local"; });

TEST_P(LeaseTest, IsHeldWhileItsHolderLives) {
  const auto first = Open(), second = Open();
  first->Look();
  const auto journal = OpenSqliteJournal(path_, *first);
  ASSERT_TRUE(journal.ok()) << journal.status();
  EXPECT_EQ(second->Look(), Verdict::kHeld);
  EXPECT_THAT(HolderOf(second->seen()), HasSubstr(absl::StrCat("pid ", getpid(), " on ")));
  EXPECT_THAT(HolderOf(second->seen()), HasSubstr("(head1:7433)"));
}

TEST_P(LeaseTest, IsFreeAtOnceWhenItIsGivenBack) {
  auto first = Open();
  first->Look();
  ASSERT_TRUE(OpenSqliteJournal(path_, *first).ok());
  first.reset();
  EXPECT_EQ(Open()->Look(), Verdict::kFree);
}

TEST_P(LeaseTest, IsFreeAtOnceWhenItWasGivenBackByOneThatGoesOn) {
  const auto first = Open(), second = Open();
  first->Look();
  const auto journal = *OpenSqliteJournal(path_, *first);
  ASSERT_TRUE(first->Release("handed over").ok());
  EXPECT_EQ(first->standing(), absl::AbortedError("handed over"));
  EXPECT_EQ(second->Look(), Verdict::kFree);
  EXPECT_TRUE(OpenSqliteJournal(path_, *second).ok());
}
TEST_P(LeaseTest, WhoHasGivenItBackRecordsNothingMoreAndDoesNotTakeItAgain) {
  const auto first = Open(), second = Open();
  first->Look();
  const auto journal = *OpenSqliteJournal(path_, *first);
  ASSERT_TRUE(first->Release("handed over").ok());
  EXPECT_TRUE(absl::IsAborted(journal->Append({Note(1)})));
  EXPECT_TRUE(absl::IsAborted(journal->Confirm()));
  EXPECT_EQ(second->Look(), Verdict::kFree);
}

TEST_P(LeaseTest, IsFreeAtOnceWhenItsHolderWasKilled) {
  const pid_t child = fork();
  if (child == 0) {
    const auto lease = Open();
    lease->Look();
    const auto journal = OpenSqliteJournal(path_, *lease);
    if (journal.ok()) raise(SIGKILL);
    _exit(1);
  }
  int status = 0;
  ASSERT_TRUE(AwaitChild(child, status)) << "the holder's end";
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(Open()->Look(), Verdict::kFree);
}

TEST_P(LeaseTest, AHolderThatWasStoppedInTheMiddleOfAWriteIsEnded) {
  const pid_t child = fork();
  if (child == 0) {
    const auto lease = Open();
    lease->Look();
    const auto journal = OpenSqliteJournal(path_, *lease);
    sqlite3* database = nullptr;
    if (!journal.ok() || sqlite3_open(path_.c_str(), &database) != SQLITE_OK) _exit(1);
    while (sqlite3_exec(database, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) != SQLITE_OK) {
    }
    raise(SIGSTOP);
    _exit(2);
  }
  int status = 0;
  ASSERT_TRUE(AwaitChild(child, status, WUNTRACED)) << "the holder to stop";
  ASSERT_TRUE(WIFSTOPPED(status));
  const auto lease = Open();
  lease->Look();
  EXPECT_TRUE(absl::IsUnavailable(OpenSqliteJournal(path_, *lease).status()));
  EXPECT_TRUE(lease->EndSilentHolder());
  ASSERT_TRUE(AwaitChild(child, status)) << "the silent holder's end";
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(lease->Look(), Verdict::kFree);
  EXPECT_TRUE(OpenSqliteJournal(path_, *lease).ok());
}
TEST_P(LeaseTest, NobodyElseIsEnded) {
  const auto own = Open();
  own->Look();
  const auto journal = OpenSqliteJournal(path_, *own);
  const auto other = Open();
  other->Look();
  EXPECT_FALSE(other->EndSilentHolder());  // it is this very process
}

TEST_P(LeaseTest, EachHolderHasAHigherEpoch) {
  int64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    const auto lease = Open();
    lease->Look();
    ASSERT_TRUE(OpenSqliteJournal(path_, *lease).ok());
    EXPECT_GT(lease->epoch(), last);
    last = lease->epoch();
  }
}

TEST_P(LeaseTest, OfTwoThatFoundItFreeOneGetsIt) {
  const auto first = Open(), second = Open();
  first->Look();
  second->Look();
  const auto journal = OpenSqliteJournal(path_, *first);
  ASSERT_TRUE(journal.ok());
  const absl::Status late = OpenSqliteJournal(path_, *second).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(late)) << late;
  EXPECT_TRUE((*journal)->Append({Note(1)}).ok());
}

class ReplacedLeaseTest : public LeaseTest {
 protected:
  void SetUp() override {
    old_->Look();
    old_journal_ = *OpenSqliteJournal(path_, *old_);
    ASSERT_TRUE(old_journal_->Append({Note(1)}).ok());
    new_journal_ = TakeOver(*new_);
  }

  std::unique_ptr<Lease> old_ = Open(), new_ = Open();
  std::unique_ptr<Journal> old_journal_, new_journal_;
};

INSTANTIATE_TEST_SUITE_P(Modes, ReplacedLeaseTest, testing::Bool(),
                         [](const auto& shared) { return shared.param ? "Shared" : "Local"; });

TEST_P(ReplacedLeaseTest, TheOlderOneCannotAppend) {
  const absl::Status fenced = old_journal_->Append({Note(2)});
  EXPECT_TRUE(absl::IsAborted(fenced)) << fenced;
  EXPECT_THAT(std::string(fenced.message()), HasSubstr("has taken over"));
}
TEST_P(ReplacedLeaseTest, NothingOfWhatItTriedIsThere) {
  old_journal_->Append({Note(2)}).IgnoreError();
  int events = 0;
  EXPECT_TRUE(new_journal_->Replay([&](const Event&) { ++events; }).ok());
  EXPECT_EQ(events, 1);
}
TEST_P(ReplacedLeaseTest, TheNewerOneGoesOnWhereTheOlderOneWas) {
  EXPECT_TRUE(new_journal_->Append({Note(2)}).ok());
}
TEST_P(ReplacedLeaseTest, TheOlderOneMayNotActWithoutAppendingEither) {
  EXPECT_TRUE(absl::IsAborted(old_journal_->Confirm()));
  EXPECT_TRUE(new_journal_->Confirm().ok());
}
TEST_P(ReplacedLeaseTest, TheOlderOneKnowsItFromThenOn) {
  old_journal_->Confirm().IgnoreError();
  EXPECT_TRUE(absl::IsAborted(old_->standing()));
}
TEST_P(ReplacedLeaseTest, TheOlderOneDoesNotReleaseWhatIsNotItsOwn) {
  old_journal_.reset();
  old_.reset();
  EXPECT_EQ(Open()->Look(), Verdict::kHeld);
}

TEST_P(LeaseTest, SaysThatItLives) {
  const auto lease = Open();
  lease->Look();
  const auto journal = *OpenSqliteJournal(path_, *lease);
  AwaitBeat();
}

// As a migration does that rewrites the whole file.
TEST_P(LeaseTest, SaysThatItLivesWhileItKeepsTheJournalLocked) {
  const auto lease = Open();
  lease->Look();
  const auto journal = *OpenSqliteJournal(path_, *lease);
  const auto work = lease->WithoutTurns();
  Database database = *Database::Open(path_, Database::Mode::kReadWrite);
  const Transaction locked = *Transaction::Begin(database);
  AwaitBeat();
}

// They leave no other controller a turn at the database.
TEST_P(LeaseTest, SaysThatItLivesAlsoWhileItAppendsWithoutAPause) {
  const auto lease = Open(), other = Open();
  lease->Look();
  const auto journal = *OpenSqliteJournal(path_, *lease);
  other->Look();
  const int64_t beat = other->seen().beat;
  for (int64_t seq = 1; other->seen().beat < beat + 2; ++seq) {
    ASSERT_TRUE(journal->Append({Note(seq)}).ok());
    other->Look();
  }
  EXPECT_TRUE(lease->standing().ok());
}

TEST_P(LeaseTest, AFileThatSaysNothingIsNotTakenForALease) {
  ASSERT_TRUE(WriteFileAtomically(path_ + ".lease", "{what").ok());
  EXPECT_EQ(Open()->Look(), Verdict::kUnknown);
}

TEST(LeaseRecord, ComesBackAsItWent) {
  const LeaseRecord record{7, 8, true, true, "h", "b", 9, "a", "http://127.0.0.1:7480"};
  EXPECT_EQ(*DecodeLease(EncodeLease(record)), record);
}
TEST(LeaseRecord, AnEarlierControllerSaysNothingOfItsPage) {
  EXPECT_EQ(DecodeLease(R"({"epoch": 7, "address": "a"})")->page, "");
}
TEST(LeaseRecord, AnEmptyFileIsNobodys) { EXPECT_EQ(*DecodeLease(" \n"), LeaseRecord()); }

}  // namespace
}  // namespace siding
