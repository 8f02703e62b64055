// A SQLite database whose errors say what is wrong, in which file, and what can be done about it.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace siding {

struct FinalizeStatement {
  void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
};
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

// Of a damaged journal: how it is damaged, and the ways back.
absl::Status Damaged(const std::string& path, const std::string& how);

// Not thread-safe. Statements must be gone before their database.
//
// Errors: kDataLoss if the file is damaged, kResourceExhausted if the disk is full, kPermissionDenied if it
// may not be written, kUnavailable if another process has it locked; kInternal for what else SQLite says.
class Database {
 public:
  enum class Mode {
    kReadWrite,
    kReadOnly,   // beside one who writes
    kImmutable,  // there is no writer, and what lies beside the file (its log) is not looked at
  };
  // `busy_ms`: how long to wait for a lock.
  static absl::StatusOr<Database> Open(const std::string& path, Mode mode, int busy_ms = 5000);

  absl::Status Run(const std::string& sql);
  absl::StatusOr<Statement> Prepare(const std::string& sql);
  // The first column of the first row, or `otherwise` if there is none or it is NULL.
  absl::StatusOr<int64_t> Number(const std::string& sql, int64_t otherwise);
  // The table `meta`: one number for each name. `otherwise` if there is none.
  absl::StatusOr<int64_t> Meta(const std::string& key, int64_t otherwise);
  absl::Status SetMeta(const std::string& key, int64_t value);
  // Looks at every page: kDataLoss if they do not fit together.
  absl::Status Check();

  // What went wrong last, while doing `what`.
  absl::Status Error(const std::string& what) const;
  const std::string& path() const { return path_; }
  sqlite3* get() const { return db_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
  };
  Database(std::string path, sqlite3* db) : path_(std::move(path)), db_(db) {}

  std::string path_;
  std::unique_ptr<sqlite3, Close> db_;
};

// Rolled back unless it was committed.
class Transaction {
 public:
  static absl::StatusOr<Transaction> Begin(Database& db);
  Transaction(Transaction&& other) noexcept : db_(other.db_) { other.db_ = nullptr; }
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  // Durable when it returns OK; otherwise nothing of it is there.
  absl::Status Commit();

 private:
  explicit Transaction(Database& db) : db_(&db) {}
  Database* db_;  // null: it is over
};

}  // namespace siding
