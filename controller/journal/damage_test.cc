// Files that are not as they were written, and places that cannot be written.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "common/patience_for_test.h"
#include "controller/journal/check.h"
#include "controller/journal/journal_fixture.h"

namespace siding {
namespace {

using testing::HasSubstr;

// A journal as its controller left it, which can be damaged again and again.
class DamageTest : public JournalTest {
 protected:
  static constexpr int64_t kEvents = 300;
  static constexpr size_t kPage = 4096;

  DamageTest() {
    Write(kEvents);
    whole_ = *ReadFile(path_);
    whole_text_ = *Text();
  }
  // Every event; or why there is none.
  absl::StatusOr<std::string> Text() {
    auto journal = OpenSqliteJournal(path_);
    if (!journal.ok()) return journal.status();
    std::string text;
    const absl::Status status = (*journal)->Replay([&](const Event& event) {
      absl::StrAppend(&text, event.seq, " ", ToMicros(event.at), " ", event.job.value(), " ",
                      BodyKind(event.body), EncodeEventBody(event), "\n");
    });
    if (!status.ok()) return status;
    return text;
  }
  absl::StatusOr<std::string> TextOf(const std::string& content) {
    for (const char* beside : {"-wal", "-shm"}) std::filesystem::remove(path_ + beside);
    EXPECT_TRUE(WriteFileAtomically(path_, content).ok());
    return Text();
  }
  std::string whole_, whole_text_;
};

// Where nothing is stored a byte may change. Anywhere else it is noticed; never is an event another one.
TEST_F(DamageTest, AByteThatChangedIsNoticedWhereverItMatters) {
  ASSERT_GT(whole_.size(), 8 * kPage);
  size_t noticed = 0, tried = 0;
  for (size_t page = 0; page < whole_.size(); page += kPage) {
    for (const size_t place :
         {0ul, 1ul, 3ul, 5ul, 8ul, 17ul, 40ul, 100ul, 1000ul, 2500ul, 4000ul, kPage - 1}) {
      std::string content = whole_;
      content[page + place] = static_cast<char>(content[page + place] ^ 0x41);
      const auto text = TextOf(content);
      ++tried;
      if (text.ok()) {
        EXPECT_EQ(*text, whole_text_) << "byte " << page + place;
      } else {
        ++noticed;
        EXPECT_FALSE(text.status().message().empty());
      }
    }
  }
  EXPECT_GT(noticed, tried / 2);
}

TEST_F(DamageTest, AChangedEventIsNoticed) {
  std::string content = whole_;
  const size_t place = content.find("\"text\":\"n\"");
  ASSERT_NE(place, std::string::npos);
  content[place + 8] = 'm';
  EXPECT_THAT(std::string(TextOf(content).status().message()), HasSubstr("is not as it was written"));
}

TEST_F(DamageTest, AFileThatWasCutOffIsRefused) {
  for (size_t size = kPage / 2; size < whole_.size(); size += kPage) {
    const absl::Status status = TextOf(whole_.substr(0, size)).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << size << ": " << status;
  }
}

TEST_F(DamageTest, WhatIsNoDatabaseIsRefused) {
  const absl::Status status = TextOf("#!/bin/sh\nexit 0\n").status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(".recover"));
}

TEST_F(DamageTest, ARefusedFileIsLeftAsItIs) {
  std::string content = whole_;
  for (size_t place = kPage; place < 3 * kPage; ++place) content[place] = 'x';
  ASSERT_FALSE(TextOf(content).ok());
  EXPECT_EQ(*ReadFile(path_), content);
}

TEST_F(DamageTest, ACopyIsCheckedToTheLastByte) {
  EXPECT_EQ(CheckJournalCopy(path_)->events, kEvents);
  std::string content = whole_;
  content[content.find("\"text\":\"n\"") + 8] = 'm';
  ASSERT_TRUE(WriteFileAtomically(path_, content).ok());
  EXPECT_TRUE(absl::IsDataLoss(CheckJournalCopy(path_).status()));
}

// SQLite takes many of these texts for good ones.
TEST_F(DamageTest, AChangedLetterOfACopysSchemaIsNoticed) {
  ASSERT_TRUE(CheckJournalCopy(path_).ok());
  for (const std::string text : {"CREATE TABLE meta", "CREATE TABLE events", "CREATE INDEX events_by_job"}) {
    const size_t begin = whole_.find(text), end = whole_.find(")", whole_.find("(", begin));
    ASSERT_NE(end, std::string::npos) << text;
    for (size_t place = begin; place <= end; ++place) {
      std::string content = whole_;
      content[place] = static_cast<char>(content[place] ^ (1 << place % 8));
      ASSERT_TRUE(WriteFileAtomically(path_, content).ok());
      EXPECT_FALSE(CheckJournalCopy(path_).ok())
          << "byte " << place << " of " << whole_.substr(begin, end - begin);
    }
  }
}

TEST_F(DamageTest, AJournalInUseIsNoCopy) {
  auto journal = *OpenSqliteJournal(path_);
  ASSERT_TRUE(journal->Append({Note(kEvents + 1)}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckJournalCopy(path_).status()));
}

// Its controller died, and what it wrote last is in the log.
class TornLogTest : public JournalTest {
 protected:
  static constexpr int64_t kTransactions = 20;

  TornLogTest() {
    Write(1);
    const pid_t child = fork();
    if (child == 0) {
      auto journal = OpenSqliteJournal(path_);
      for (int64_t seq = 2; journal.ok() && seq <= kTransactions; ++seq) {
        if (!(*journal)->Append({Note(seq)}).ok()) _exit(1);
      }
      raise(SIGKILL);
    }
    int status = 0;
    EXPECT_TRUE(AwaitChild(child, status)) << "the end of its controller";
    EXPECT_TRUE(WIFSIGNALED(status));
    log_ = *ReadFile(path_ + "-wal");
    file_ = *ReadFile(path_);
  }
  int64_t CountWithLog(const std::string& log) {
    std::filesystem::remove(path_ + "-shm");
    EXPECT_TRUE(WriteFileAtomically(path_, file_).ok());
    EXPECT_TRUE(WriteFileAtomically(path_ + "-wal", log).ok());
    auto journal = OpenSqliteJournal(path_);
    EXPECT_TRUE(journal.ok()) << journal.status();
    return journal.ok() ? Count(**journal) : -1;
  }
  std::string log_, file_;
};

TEST_F(TornLogTest, TransactionsBeforeTheTearSurvive) {
  ASSERT_EQ(CountWithLog(log_), kTransactions);
  int64_t before = kTransactions;
  for (size_t size = log_.size(); size > 5000; size -= 3000) {
    const int64_t events = CountWithLog(log_.substr(0, size));
    EXPECT_LE(events, before) << size;
    EXPECT_GE(events, 1) << size;
    before = events;
  }
  EXPECT_LT(before, kTransactions / 2);
}

TEST_F(TornLogTest, TransactionsBeforeAChangedByteSurvive) {
  std::string log = log_;
  log[log.size() / 2] = static_cast<char>(log[log.size() / 2] ^ 0x41);
  const int64_t events = CountWithLog(log);
  EXPECT_GT(events, 1);
  EXPECT_LT(events, kTransactions);
}

// Run as another user where the test itself is root's, which modes do not stop.
TEST_F(JournalTest, AFolderThatCannotBeWrittenIsNamed) {
  ASSERT_EQ(chmod(folder_.c_str(), 0555), 0);
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (getuid() == 0 && setuid(kNobody) != 0) _exit(2);
    const absl::Status status = OpenSqliteJournal(path_).status();
    const bool named =
        absl::IsPermissionDenied(status) && status.message().find(path_) != status.message().npos;
    _exit(named ? 0 : 1);
  }
  int status = 0;
  ASSERT_TRUE(AwaitChild(child, status)) << "the end of the other user's process";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace siding
