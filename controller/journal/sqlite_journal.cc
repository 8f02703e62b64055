#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/mutex.h"
#include "common/status.h"
#include "controller/journal/checksum.h"
#include "controller/journal/compaction.h"
#include "controller/journal/database.h"
#include "controller/journal/ended_contents.h"
#include "controller/journal/event_row.h"
#include "controller/journal/journal.h"
#include "controller/journal/journal_file.h"
#include "controller/journal/lease.h"
#include "controller/journal/schema.h"

namespace siding {
namespace {

constexpr int64_t kPagesAtOnce = 256;

class SqliteJournal final : public Journal {
 public:
  // `own`: the lease if the journal owns it.
  SqliteJournal(Database db, Lease& lease, std::unique_ptr<Lease> own)
      : own_(std::move(own)), lease_(lease), db_(std::move(db)) {}

  absl::Status Open() {
    SIDING_RETURN_IF_ERROR(db_.Check());
    // Before any table is changed: a newer journal stays as it is, and so does another controller's.
    SIDING_RETURN_IF_ERROR(SchemaOf(db_).status());
    SIDING_RETURN_IF_ERROR(SetMode());
    SIDING_RETURN_IF_ERROR(lease_.Claim(db_));
    {
      const auto long_work = lease_.WithoutTurns();
      SIDING_RETURN_IF_ERROR(Migrate(db_));
    }
    SIDING_ASSIGN_OR_RETURN(last_seq_, db_.Number("SELECT max(seq) FROM events", 0));
    SIDING_ASSIGN_OR_RETURN(removed_, db_.Meta("removed", 0));
    SIDING_ASSIGN_OR_RETURN(restored_, db_.Meta("restored", 0));
    SIDING_ASSIGN_OR_RETURN(cluster_, Cluster());
    SIDING_ASSIGN_OR_RETURN(insert_, db_.Prepare("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)"));
    MutexLock lock(reading_);
    SIDING_ASSIGN_OR_RETURN(reader_, Database::Open(db_.path(), Database::Mode::kReadOnly));
    return absl::OkStatus();
  }

  absl::Status Append(const std::vector<Event>& events) override {
    SIDING_RETURN_IF_ERROR(FaultAt<"journal.begin: a transaction is about to begin">());
    SIDING_ASSIGN_OR_RETURN(Transaction transaction, BeginAsHolder());
    // Whether an event could be written is found out by writing something.
    if (events.empty()) SIDING_RETURN_IF_ERROR(db_.SetMeta("tried", last_seq_));
    int64_t seq = last_seq_;
    for (const Event& event : events) {
      if (event.seq != ++seq)
        return absl::InternalError(absl::StrCat("event ", event.seq, " does not follow on ", seq - 1));
      SIDING_RETURN_IF_ERROR(Insert(event));
      if (std::holds_alternative<JournalRestored>(event.body))
        SIDING_RETURN_IF_ERROR(db_.Run("DELETE FROM meta WHERE key='restored'"));
    }
    SIDING_RETURN_IF_ERROR(FaultAt<"journal.commit: a transaction is about to be committed">());
    SIDING_RETURN_IF_ERROR(transaction.Commit());
    last_seq_ = seq;
    for (const Event& event : events) Note(event);
    return FaultAt<"journal.committed: a transaction is durable, nobody has been told">();
  }

  absl::Status Confirm() override { return lease_.Confirm(); }

  absl::Status Replay(const std::function<void(const Event&)>& visit) override {
    compaction_ = Compaction();
    ended_ = EndedContents();
    int64_t count = 0;
    SIDING_RETURN_IF_ERROR(Visit(db_, 0, kAllEvents, [&](const Event& event) {
      ++count;
      Note(event);
      visit(event);
    }));
    // Events of forgotten jobs have been removed, one knows how many. Any other is missing.
    const int64_t missing = last_seq_ - removed_ - count;
    if (missing != 0) return Damaged(db_.path(), absl::StrCat(missing, " events are missing"));
    return absl::OkStatus();
  }

  // On a connection of its own: beside a log written ahead it holds up no Append(), and none holds up it.
  absl::StatusOr<std::vector<Event>> Read(int64_t after, size_t limit) const override {
    MutexLock lock(reading_);
    std::vector<Event> events;
    SIDING_RETURN_IF_ERROR(Visit(*reader_, after, static_cast<int64_t>(limit),
                                 [&](const Event& event) { events.push_back(event); }));
    return events;
  }

  absl::StatusOr<bool> Compact() override {
    if (ended_.Done() && compaction_.Done()) return Shrink();
    SIDING_ASSIGN_OR_RETURN(Transaction transaction, BeginAsHolder());
    SIDING_RETURN_IF_ERROR(ended_.DropSome(db_));
    int64_t now_removed = 0;
    if (!compaction_.Done()) {
      SIDING_ASSIGN_OR_RETURN(now_removed, compaction_.RemoveSome(db_));
      SIDING_RETURN_IF_ERROR(db_.SetMeta("removed", removed_ + now_removed));
    }
    SIDING_RETURN_IF_ERROR(transaction.Commit());
    ended_.Committed();
    if (!compaction_.Done()) compaction_.Committed();
    removed_ += now_removed;
    return true;
  }

  absl::Status Copy(const std::string& to, const CopyProgress& progress) override {
    // Without a log that is written ahead nothing can be committed while another connection reads.
    return lease_.shared() ? CopyBetweenAppends(db_, to, progress) : CopyJournal(db_.path(), to, progress);
  }

  int64_t cluster() const override { return cluster_; }
  int64_t restored() const override { return restored_; }

 private:
  // Of a journal of an earlier siding it is drawn now. But what was started since a copy of such a one was
  // made may have another that was drawn for it; by no number it is the copy's own.
  absl::StatusOr<int64_t> Cluster() {
    SIDING_ASSIGN_OR_RETURN(const int64_t known, db_.Meta("cluster", 0));
    if (known != 0) return std::max<int64_t>(known, 0);
    std::random_device random;
    const int64_t drawn = restored_ != 0 ? -1
                                         : std::uniform_int_distribution<int64_t>(
                                               1, std::numeric_limits<int64_t>::max())(random);
    SIDING_ASSIGN_OR_RETURN(Transaction transaction, BeginAsHolder());
    SIDING_RETURN_IF_ERROR(db_.SetMeta("cluster", drawn));
    SIDING_RETURN_IF_ERROR(transaction.Commit());
    return std::max<int64_t>(drawn, 0);
  }

  // The log that SQLite writes ahead is faster, but lies in memory that hosts do not share.
  absl::Status SetMode() {
    const std::string mode = lease_.shared() ? "truncate" : "wal";
    SIDING_ASSIGN_OR_RETURN(Statement set, db_.Prepare("PRAGMA journal_mode=" + mode));
    if (sqlite3_step(set.get()) != SQLITE_ROW) return db_.Error("journal_mode");
    const std::string now = reinterpret_cast<const char*>(sqlite3_column_text(set.get(), 0));
    if (now != mode) {
      return absl::UnavailableError(
          absl::StrCat(db_.path(), ": it is in use in mode ", now, " and not ", mode));
    }
    return db_.Run("PRAGMA synchronous=FULL");
  }

  absl::StatusOr<Transaction> BeginAsHolder() {
    SIDING_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db_));
    SIDING_RETURN_IF_ERROR(lease_.Check(db_));
    return transaction;
  }

  // What an event that is in the journal means for the journal itself.
  void Note(const Event& event) {
    ended_.Add(event);
    if (const auto* forgotten = std::get_if<JobsForgotten>(&event.body))
      compaction_.Add(event.seq, forgotten->jobs);
    if (std::holds_alternative<JournalRestored>(event.body) && event.seq > restored_) restored_ = 0;
  }

  // Gives pages back to the file system, if a good part of the file is free. True if there are more.
  absl::StatusOr<bool> Shrink() {
    SIDING_ASSIGN_OR_RETURN(const int64_t pages, db_.Number("PRAGMA page_count", 0));
    SIDING_ASSIGN_OR_RETURN(const int64_t free, db_.Number("PRAGMA freelist_count", 0));
    if (free < std::max(kPagesAtOnce, pages / 4)) return false;
    SIDING_RETURN_IF_ERROR(db_.Run(absl::StrCat("PRAGMA incremental_vacuum(", kPagesAtOnce, ")")));
    return true;
  }

  static absl::Status Visit(Database& db, int64_t after, int64_t limit,
                            const std::function<void(const Event&)>& visit) {
    SIDING_ASSIGN_OR_RETURN(Statement select, SelectEvents(db, after, limit));
    int rc;
    while ((rc = sqlite3_step(select.get())) == SQLITE_ROW) {
      SIDING_ASSIGN_OR_RETURN(const Event event, EventIn(db, select.get()));
      visit(event);
    }
    return rc == SQLITE_DONE ? absl::OkStatus() : db.Error("read");
  }

  static absl::StatusOr<Event> EventIn(const Database& db, sqlite3_stmt* row) {
    SIDING_ASSIGN_OR_RETURN(const EventRow stored, ReadRow(db, row));
    auto body = DecodeEventBody(stored.kind, stored.body);
    if (!body.ok()) return Annotate(body.status(), absl::StrCat(db.path(), ": event ", stored.seq));
    return Event{stored.seq, FromMicros(stored.at_us), JobId(stored.job), *std::move(body)};
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
    sqlite3_bind_int64(s, 6, EventChecksum(event.seq, ToMicros(event.at), event.job.value(), kind, body));
    const int rc = sqlite3_step(s);
    absl::Status status = rc == SQLITE_DONE ? absl::OkStatus() : db_.Error("insert");
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return status;
  }

  const std::unique_ptr<Lease> own_;  // before the database: it is given back last
  Lease& lease_;
  Database db_;
  Statement insert_;  // after db_: it must be finalized first
  int64_t cluster_ = 0;
  int64_t last_seq_ = 0;
  int64_t removed_ = 0;  // events, of forgotten jobs
  int64_t restored_ = 0;
  Compaction compaction_;
  EndedContents ended_;

  mutable Mutex reading_;
  mutable std::optional<Database> reader_ ABSL_GUARDED_BY(reading_);
};

absl::StatusOr<std::unique_ptr<Journal>> Open(const std::string& path, Lease& lease,
                                              std::unique_ptr<Lease> own) {
  // Of two that find no journal, or a copy that was put back, one prepares it. Others are told by the lease.
  UniqueFd lock(open(absl::StrCat(path, ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return ErrnoError(errno, absl::StrCat("open ", path, ".lock"));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return absl::UnavailableError(absl::StrCat(path, " is being opened by another sidingd"));
  SIDING_RETURN_IF_ERROR(PrepareJournalFile(path));
  SIDING_ASSIGN_OR_RETURN(Database db, Database::Open(path, Database::Mode::kReadWrite));
  auto journal = std::make_unique<SqliteJournal>(std::move(db), lease, std::move(own));
  SIDING_RETURN_IF_ERROR(journal->Open());
  return journal;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> OpenSqliteJournal(const std::string& path, Lease& lease) {
  return Open(path, lease, nullptr);
}

absl::StatusOr<std::unique_ptr<Journal>> OpenSqliteJournal(const std::string& path) {
  SIDING_ASSIGN_OR_RETURN(std::unique_ptr<Lease> lease, Lease::Open({.journal = path}));
  if (lease->Look() != LeaseWatch::Verdict::kFree) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is in use by another sidingd: ", HolderOf(lease->seen())));
  }
  Lease& own = *lease;
  return Open(path, own, std::move(lease));
}

}  // namespace siding
