#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/status.h"
#include "controller/journal/journal.h"

namespace siding {
namespace {

constexpr int kSchemaVersion = 1;

constexpr const char* kSchema = R"sql(
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS events (
  seq   INTEGER PRIMARY KEY,
  at_us INTEGER NOT NULL,
  job   INTEGER NOT NULL,
  kind  TEXT NOT NULL,
  body  TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS events_by_job ON events (job, seq);
)sql";

struct CloseDatabase {
  void operator()(sqlite3* db) const { sqlite3_close(db); }
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

class SqliteJournal final : public Journal {
 public:
  SqliteJournal(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  absl::Status Open() {
    sqlite3* db = nullptr;
    const int rc = sqlite3_open_v2(path_.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    db_.reset(db);
    if (rc != SQLITE_OK) return Error("open");
    SIDING_RETURN_IF_ERROR(Check());
    // Before anything is changed: a newer database stays as it is.
    SIDING_ASSIGN_OR_RETURN(int64_t tables,
                            Number("SELECT count(*) FROM sqlite_master WHERE name='meta'", 0));
    SIDING_ASSIGN_OR_RETURN(
        int64_t version,
        Number(tables == 0 ? "SELECT NULL" : "SELECT value FROM meta WHERE key='schema'", kSchemaVersion));
    if (version > kSchemaVersion) {
      return absl::FailedPreconditionError(absl::StrCat(path_, " was written by a newer siding (schema ",
                                                        version, ", this one knows ", kSchemaVersion, ")"));
    }
    SIDING_RETURN_IF_ERROR(Run("PRAGMA journal_mode=WAL"));
    SIDING_RETURN_IF_ERROR(Run("PRAGMA synchronous=FULL"));
    SIDING_RETURN_IF_ERROR(Run(kSchema));
    SIDING_RETURN_IF_ERROR(
        Run(absl::StrCat("INSERT OR IGNORE INTO meta VALUES ('schema', ", kSchemaVersion, ")")));
    SIDING_ASSIGN_OR_RETURN(last_seq_, Number("SELECT max(seq) FROM events", 0));
    SIDING_ASSIGN_OR_RETURN(insert_, Prepare("INSERT INTO events VALUES (?, ?, ?, ?, ?)"));
    return absl::OkStatus();
  }

  absl::Status Append(const std::vector<Event>& events) override {
    SIDING_RETURN_IF_ERROR(FaultAt<"journal.begin: a transaction is about to begin">());
    SIDING_RETURN_IF_ERROR(Run("BEGIN"));
    int64_t seq = last_seq_;
    for (const Event& event : events) {
      absl::Status status =
          event.seq == ++seq
              ? Insert(event)
              : absl::InternalError(absl::StrCat("event ", event.seq, " does not follow on ", seq - 1));
      if (!status.ok()) {
        Run("ROLLBACK").IgnoreError();
        return status;
      }
    }
    absl::Status status = FaultAt<"journal.commit: a transaction is about to be committed">();
    if (status.ok()) status = Run("COMMIT");
    if (!status.ok()) {
      Run("ROLLBACK").IgnoreError();
      return status;
    }
    last_seq_ = seq;
    return FaultAt<"journal.committed: a transaction is durable, nobody has been told">();
  }

  absl::Status Replay(int64_t after, const std::function<void(const Event&)>& visit) override {
    SIDING_ASSIGN_OR_RETURN(
        Statement select,
        Prepare("SELECT seq, at_us, job, kind, body FROM events WHERE seq > ? ORDER BY seq"));
    sqlite3_bind_int64(select.get(), 1, after);
    int rc;
    while ((rc = sqlite3_step(select.get())) == SQLITE_ROW) {
      const auto text = [&](int column) {
        return std::string(reinterpret_cast<const char*>(sqlite3_column_text(select.get(), column)),
                           static_cast<size_t>(sqlite3_column_bytes(select.get(), column)));
      };
      Event event;
      event.seq = sqlite3_column_int64(select.get(), 0);
      event.at = FromMicros(sqlite3_column_int64(select.get(), 1));
      event.job = JobId(sqlite3_column_int64(select.get(), 2));
      auto body = DecodeEventBody(text(3), text(4));
      if (event.seq != ++after) return Damaged(absl::StrCat("event ", after, " is missing"));
      if (!body.ok()) return Annotate(body.status(), absl::StrCat(path_, ": event ", event.seq));
      event.body = *std::move(body);
      visit(event);
    }
    return rc == SQLITE_DONE ? absl::OkStatus() : Error("read");
  }

 private:
  absl::Status Error(const std::string& what) const {
    const std::string text = absl::StrCat(path_, ": ", what, ": ", sqlite3_errmsg(db_.get()));
    switch (sqlite3_errcode(db_.get())) {
      case SQLITE_FULL:
        return absl::ResourceExhaustedError(text);
      case SQLITE_CORRUPT:
      case SQLITE_NOTADB:
        return Damaged(sqlite3_errmsg(db_.get()));
      case SQLITE_READONLY:
      case SQLITE_CANTOPEN:
      case SQLITE_PERM:
        return absl::PermissionDeniedError(text);
      default:
        return absl::InternalError(text);
    }
  }

  absl::Status Damaged(const std::string& how) const {
    return absl::DataLossError(absl::StrCat(
        path_, " is damaged (", how,
        "). Nothing has been changed. Put back a copy of it, or rescue what is in it with: sqlite3 ", path_,
        " .recover | sqlite3 rescued.db"));
  }

  absl::Status Check() {
    auto check = Prepare("PRAGMA quick_check(1)");
    if (!check.ok()) return check.status();
    if (sqlite3_step(check->get()) != SQLITE_ROW) return Error("check");
    const std::string answer = reinterpret_cast<const char*>(sqlite3_column_text(check->get(), 0));
    return answer == "ok" ? absl::OkStatus() : Damaged(answer);
  }

  absl::Status Run(const std::string& sql) {
    return sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK
               ? absl::OkStatus()
               : Error(sql.substr(0, 30));
  }

  absl::StatusOr<Statement> Prepare(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &statement, nullptr) != SQLITE_OK)
      return Error("prepare");
    return Statement(statement);
  }

  // The first column of the first row, or `otherwise` if there is none or it is NULL.
  absl::StatusOr<int64_t> Number(const std::string& sql, int64_t otherwise) {
    SIDING_ASSIGN_OR_RETURN(Statement select, Prepare(sql));
    const int rc = sqlite3_step(select.get());
    if (rc == SQLITE_DONE) return otherwise;
    if (rc != SQLITE_ROW) return Error("read");
    return sqlite3_column_type(select.get(), 0) == SQLITE_NULL ? otherwise
                                                               : sqlite3_column_int64(select.get(), 0);
  }

  absl::Status Insert(const Event& event) {
    SIDING_RETURN_IF_ERROR(FaultAt<"journal.insert: an event is about to be added to a transaction">());
    const std::string kind = BodyKind(event.body);
    const std::string body = EncodeEventBody(event);
    sqlite3_stmt* s = insert_.get();
    sqlite3_bind_int64(s, 1, event.seq);
    sqlite3_bind_int64(s, 2, ToMicros(event.at));
    sqlite3_bind_int64(s, 3, event.job.value());
    sqlite3_bind_text(s, 4, kind.data(), static_cast<int>(kind.size()), SQLITE_STATIC);
    sqlite3_bind_text(s, 5, body.data(), static_cast<int>(body.size()), SQLITE_STATIC);
    const int rc = sqlite3_step(s);
    absl::Status status = rc == SQLITE_DONE ? absl::OkStatus() : Error("insert");
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return status;
  }

  const std::string path_;
  const UniqueFd lock_;  // held for as long as this process has the journal
  Database db_;
  Statement insert_;  // after db_: it must be finalized first
  int64_t last_seq_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> OpenSqliteJournal(const std::string& path) {
  // SQLite's own locks would let a second controller wait and then write; there must be one only.
  UniqueFd lock(open(absl::StrCat(path, ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return ErrnoError(errno, absl::StrCat("open ", path, ".lock"));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is in use by another sidingd"));
  }
  auto journal = std::make_unique<SqliteJournal>(path, std::move(lock));
  SIDING_RETURN_IF_ERROR(journal->Open());
  return journal;
}

}  // namespace siding
