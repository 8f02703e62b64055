// A folder with a journal in it, for tests.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/files.h"
#include "controller/journal/database.h"
#include "controller/journal/journal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {

class JournalTest : public testing::Test {
 protected:
  JournalTest() {
    char name[] = "/tmp/siding-journal-XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/journal.db";
  }
  ~JournalTest() override { std::filesystem::remove_all(folder_); }

  static Event Note(int64_t seq, int64_t job = 1) {
    return Event{seq, FromMicros(seq), JobId(job), Noted{"n"}};
  }
  void Write(int64_t events) {
    auto journal = *OpenSqliteJournal(path_);
    std::vector<Event> notes;
    for (int64_t seq = 1; seq <= events; ++seq) notes.push_back(Note(seq));
    ASSERT_TRUE(journal->Append(notes).ok());
  }
  static int64_t Count(Journal& journal) {
    int64_t n = 0;
    EXPECT_TRUE(journal.Replay([&](const Event&) { ++n; }).ok());
    return n;
  }
  // Changes the database behind the journal's back.
  absl::Status Sql(const std::string& statement) {
    auto db = Database::Open(path_, Database::Mode::kReadWrite);
    return db.ok() ? db->Run(statement) : db.status();
  }
  bool Exists(const std::string& ending) const { return std::filesystem::exists(path_ + ending); }

  std::string folder_, path_;
};

}  // namespace siding
