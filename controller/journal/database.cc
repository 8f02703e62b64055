#include "controller/journal/database.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace siding {
namespace {

// '?', '#' and '%' have a meaning in SQLite's names of files.
std::string Escaped(const std::string& path) {
  std::string escaped;
  for (const char c : path) {
    if (c == '?' || c == '#' || c == '%') {
      absl::StrAppend(&escaped, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

absl::Status Damaged(const std::string& path, const std::string& how) {
  return absl::DataLossError(absl::StrCat(
      path, " is damaged (", how,
      "). Nothing has been changed. Put back a copy of it, or rescue what is in it with: sqlite3 ", path,
      " .recover | sqlite3 rescued.db"));
}

absl::StatusOr<Database> Database::Open(const std::string& path, Mode mode, int busy_ms) {
  const std::string name =
      absl::StrCat("file:", Escaped(path), mode == Mode::kImmutable ? "?immutable=1" : "");
  const int access = mode == Mode::kReadWrite ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
  sqlite3* opened = nullptr;
  const int rc = sqlite3_open_v2(name.c_str(), &opened, access | SQLITE_OPEN_URI, nullptr);
  Database db(path, opened);
  if (rc != SQLITE_OK) return db.Error("open");
  sqlite3_busy_timeout(db.get(), busy_ms);
  return db;
}

absl::Status Database::Error(const std::string& what) const {
  const std::string text = absl::StrCat(path_, ": ", what, ": ", sqlite3_errmsg(db_.get()));
  switch (sqlite3_errcode(db_.get())) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(text);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Damaged(path_, sqlite3_errmsg(db_.get()));
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      return absl::PermissionDeniedError(text);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(text);
    default:
      return absl::InternalError(text);
  }
}

absl::Status Database::Check() {
  SIDING_ASSIGN_OR_RETURN(Statement check, Prepare("PRAGMA quick_check(1)"));
  if (sqlite3_step(check.get()) != SQLITE_ROW) return Error("check");
  const std::string answer = reinterpret_cast<const char*>(sqlite3_column_text(check.get(), 0));
  return answer == "ok" ? absl::OkStatus() : Damaged(path_, answer);
}

absl::Status Database::Run(const std::string& sql) {
  return sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK
             ? absl::OkStatus()
             : Error(sql.substr(0, 30));
}

absl::StatusOr<Statement> Database::Prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &statement, nullptr) != SQLITE_OK)
    return Error("prepare");
  return Statement(statement);
}

absl::StatusOr<int64_t> Database::Number(const std::string& sql, int64_t otherwise) {
  SIDING_ASSIGN_OR_RETURN(Statement select, Prepare(sql));
  const int rc = sqlite3_step(select.get());
  if (rc == SQLITE_DONE) return otherwise;
  if (rc != SQLITE_ROW) return Error("read");
  return sqlite3_column_type(select.get(), 0) == SQLITE_NULL ? otherwise
                                                             : sqlite3_column_int64(select.get(), 0);
}

absl::StatusOr<int64_t> Database::Meta(const std::string& key, int64_t otherwise) {
  SIDING_ASSIGN_OR_RETURN(const int64_t tables,
                          Number("SELECT count(*) FROM sqlite_master WHERE name='meta'", 0));
  if (tables == 0) return otherwise;
  return Number(absl::StrCat("SELECT value FROM meta WHERE key='", key, "'"), otherwise);
}

absl::Status Database::SetMeta(const std::string& key, int64_t value) {
  return Run(absl::StrCat("INSERT OR REPLACE INTO meta VALUES ('", key, "', ", value, ")"));
}

absl::StatusOr<Transaction> Transaction::Begin(Database& db) {
  SIDING_RETURN_IF_ERROR(db.Run("BEGIN IMMEDIATE"));
  return Transaction(db);
}

absl::Status Transaction::Commit() {
  SIDING_RETURN_IF_ERROR(db_->Run("COMMIT"));
  db_ = nullptr;
  return absl::OkStatus();
}

Transaction::~Transaction() {
  if (db_ != nullptr) db_->Run("ROLLBACK").IgnoreError();
}

}  // namespace siding
