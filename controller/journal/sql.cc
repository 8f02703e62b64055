#include "controller/journal/sql.h"

#include "absl/strings/str_cat.h"

namespace siding {
namespace {

absl::Status Error(sqlite3* database, const std::string& what) {
  const char* const file = sqlite3_db_filename(database, "main");
  const std::string text =
      absl::StrCat(file == nullptr ? "" : file, ": ", what, ": ", sqlite3_errmsg(database));
  const int code = sqlite3_errcode(database);
  return code == SQLITE_BUSY || code == SQLITE_LOCKED ? absl::UnavailableError(text)
                                                      : absl::InternalError(text);
}

}  // namespace

absl::StatusOr<sqlite3*> SqlOpen(const std::string& path, int busy_ms) {
  sqlite3* database = nullptr;
  if (sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READWRITE, nullptr) != SQLITE_OK) {
    const absl::Status status = Error(database, absl::StrCat("open ", path));
    sqlite3_close(database);
    return status;
  }
  sqlite3_busy_timeout(database, busy_ms);
  return database;
}

absl::Status SqlRun(sqlite3* database, const std::string& sql) {
  return sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK
             ? absl::OkStatus()
             : Error(database, sql.substr(0, 30));
}

absl::StatusOr<int64_t> SqlNumber(sqlite3* database, const std::string& sql, int64_t otherwise) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
    return Error(database, "prepare");
  }
  const int rc = sqlite3_step(statement);
  const bool value = rc == SQLITE_ROW && sqlite3_column_type(statement, 0) != SQLITE_NULL;
  const int64_t number = value ? sqlite3_column_int64(statement, 0) : otherwise;
  const absl::Status status =
      rc == SQLITE_ROW || rc == SQLITE_DONE ? absl::OkStatus() : Error(database, "read");
  sqlite3_finalize(statement);
  if (!status.ok()) return status;
  return number;
}

}  // namespace siding
