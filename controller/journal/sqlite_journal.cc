#include <sqlite3.h>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/journal/journal.h"
#include "controller/journal/lease.h"

namespace siding {
namespace {

constexpr int kSchemaVersion = 1;
// Others hold the database's lock for milliseconds: the lease, a copy that is being made, one who takes over.
constexpr int kBusyMs = 5000;
constexpr int kBusyWhileOpeningMs = 1000;

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
  // `own`: the lease if it is nobody else's.
  SqliteJournal(std::string path, Lease& lease, std::unique_ptr<Lease> own = nullptr)
      : path_(std::move(path)), own_(std::move(own)), lease_(lease) {}

  absl::Status Open() {
    sqlite3* db = nullptr;
    const int rc = sqlite3_open_v2(path_.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    db_.reset(db);
    if (rc != SQLITE_OK) return Error("open");
    sqlite3_busy_timeout(db, kBusyWhileOpeningMs);
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
    SIDING_RETURN_IF_ERROR(SetMode());
    SIDING_RETURN_IF_ERROR(lease_.Claim(db_.get()));
    sqlite3_busy_timeout(db_.get(), kBusyMs);
    SIDING_RETURN_IF_ERROR(Run(kSchema));
    SIDING_RETURN_IF_ERROR(
        Run(absl::StrCat("INSERT OR IGNORE INTO meta VALUES ('schema', ", kSchemaVersion, ")")));
    SIDING_ASSIGN_OR_RETURN(last_seq_, Number("SELECT max(seq) FROM events", 0));
    SIDING_ASSIGN_OR_RETURN(insert_, Prepare("INSERT INTO events VALUES (?, ?, ?, ?, ?)"));
    return absl::OkStatus();
  }

  absl::Status Append(const std::vector<Event>& events) override {
    SIDING_RETURN_IF_ERROR(Run("BEGIN IMMEDIATE"));
    if (absl::Status ours = lease_.Check(db_.get()); !ours.ok()) {
      Run("ROLLBACK").IgnoreError();
      return ours;
    }
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
    absl::Status status = Run("COMMIT");
    if (!status.ok()) {
      Run("ROLLBACK").IgnoreError();
      return status;
    }
    last_seq_ = seq;
    return absl::OkStatus();
  }

  absl::Status Confirm() override { return lease_.Confirm(); }

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
      case SQLITE_BUSY:
      case SQLITE_LOCKED:
        return absl::UnavailableError(text);
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

  // The log that SQLite writes ahead is faster, but lies in memory that hosts do not share.
  absl::Status SetMode() {
    const std::string mode = lease_.shared() ? "truncate" : "wal";
    SIDING_ASSIGN_OR_RETURN(Statement set, Prepare("PRAGMA journal_mode=" + mode));
    if (sqlite3_step(set.get()) != SQLITE_ROW) return Error("journal_mode");
    const std::string now = reinterpret_cast<const char*>(sqlite3_column_text(set.get(), 0));
    if (now != mode) {
      return absl::UnavailableError(absl::StrCat(path_, ": it is in use in mode ", now, " and not ", mode));
    }
    return Run("PRAGMA synchronous=FULL");
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
  const std::unique_ptr<Lease> own_;  // before the database: it is given back last
  Lease& lease_;
  Database db_;
  Statement insert_;  // after db_: it must be finalized first
  int64_t last_seq_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> OpenSqliteJournal(const std::string& path, Lease& lease) {
  auto journal = std::make_unique<SqliteJournal>(path, lease);
  SIDING_RETURN_IF_ERROR(journal->Open());
  return journal;
}

absl::StatusOr<std::unique_ptr<Journal>> OpenSqliteJournal(const std::string& path) {
  SIDING_ASSIGN_OR_RETURN(std::unique_ptr<Lease> lease, Lease::Open({.journal = path}));
  if (lease->Look() != LeaseWatch::Verdict::kFree) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is in use by another sidingd: ", HolderOf(lease->seen())));
  }
  Lease& own = *lease;
  auto journal = std::make_unique<SqliteJournal>(path, own, std::move(lease));
  SIDING_RETURN_IF_ERROR(journal->Open());
  return journal;
}

}  // namespace siding
