#include "controller/journal/schema.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/logging.h"
#include "common/status.h"
#include "controller/journal/checksum.h"
#include "controller/journal/copy.h"

namespace siding {
namespace {

struct Migration {
  int64_t to;  // from the number before
  const char* sql;
};

// Never changed once it has been released: only added to.
constexpr Migration kMigrations[] = {
    {1, R"sql(
        CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL);
        CREATE TABLE events (
          seq   INTEGER PRIMARY KEY,
          at_us INTEGER NOT NULL,
          job   INTEGER NOT NULL,
          kind  TEXT NOT NULL,
          body  TEXT NOT NULL
        );
        CREATE INDEX events_by_job ON events (job, seq))sql"},
    // Events of forgotten jobs are removed, and counted; what remains is checked.
    {2, R"sql(
        INSERT INTO meta VALUES ('removed', 0);
        ALTER TABLE events ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
        UPDATE events SET checksum = event_checksum(seq, at_us, job, kind, body))sql"},
};

absl::string_view TextOf(sqlite3_value* value) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  return {text, static_cast<size_t>(sqlite3_value_bytes(value))};
}

void ChecksumInSql(sqlite3_context* context, int, sqlite3_value** columns) {
  sqlite3_result_int64(
      context, EventChecksum(sqlite3_value_int64(columns[0]), sqlite3_value_int64(columns[1]),
                             sqlite3_value_int64(columns[2]), TextOf(columns[3]), TextOf(columns[4])));
}

absl::Status Step(Database& db, const Migration& migration) {
  SIDING_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db));
  SIDING_RETURN_IF_ERROR(db.Run(migration.sql));
  SIDING_RETURN_IF_ERROR(db.SetMeta("schema", migration.to));
  return transaction.Commit();
}

absl::Status MigrateFrom(Database& db, int64_t version, int64_t to = kJournalSchema) {
  constexpr int kColumns = 5;
  if (sqlite3_create_function(db.get(), "event_checksum", kColumns, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                              nullptr, ChecksumInSql, nullptr, nullptr) != SQLITE_OK)
    return db.Error("event_checksum");
  for (const Migration& migration : kMigrations) {
    if (migration.to > version && migration.to <= to) SIDING_RETURN_IF_ERROR(Step(db, migration));
  }
  return absl::OkStatus();
}

// By name: its table, and its text without what only sets words apart.
using SchemaText = std::map<std::string, std::string>;

absl::StatusOr<SchemaText> ReadSchemaText(Database& db) {
  SIDING_ASSIGN_OR_RETURN(
      Statement select,
      db.Prepare("SELECT name, type || ' of ' || tbl_name || ': ' || coalesce(sql, '') FROM sqlite_master"));
  SchemaText text;
  int rc;
  while ((rc = sqlite3_step(select.get())) == SQLITE_ROW) {
    const auto column = [&](int i) {
      const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(select.get(), i));
      return std::string(bytes == nullptr ? "" : bytes,
                         static_cast<size_t>(sqlite3_column_bytes(select.get(), i)));
    };
    std::string& words = text[column(0)] = column(1);
    std::erase_if(words, [](char c) { return c == ' ' || c == '\n'; });
  }
  if (rc != SQLITE_DONE) return db.Error("read the schema");
  return text;
}

// So that the file can become smaller. It takes effect when the whole file is rewritten.
absl::Status LetItShrink(Database& db) {
  constexpr int64_t kIncremental = 2;
  SIDING_ASSIGN_OR_RETURN(const int64_t mode, db.Number("PRAGMA auto_vacuum", 0));
  if (mode == kIncremental) return absl::OkStatus();
  SIDING_RETURN_IF_ERROR(db.Run("PRAGMA auto_vacuum=INCREMENTAL"));
  return db.Run("VACUUM");
}

}  // namespace

absl::StatusOr<int64_t> SchemaOf(Database& db) {
  SIDING_ASSIGN_OR_RETURN(const int64_t version, db.Meta("schema", 0));
  if (version > kJournalSchema) {
    return absl::FailedPreconditionError(absl::StrCat(db.path(), " was written by a newer siding (schema ",
                                                      version, ", this one knows ", kJournalSchema, ")"));
  }
  if (version < 1) return Damaged(db.path(), "it is no journal: it does not say which schema it has");
  return version;
}

absl::Status CheckSchemaText(Database& db, int64_t version) {
  SIDING_ASSIGN_OR_RETURN(Database fresh, Database::Open(":memory:", Database::Mode::kReadWrite));
  SIDING_RETURN_IF_ERROR(MigrateFrom(fresh, 0, version));
  SIDING_ASSIGN_OR_RETURN(const SchemaText expected, ReadSchemaText(fresh));
  SIDING_ASSIGN_OR_RETURN(const SchemaText found, ReadSchemaText(db));
  for (const auto& [name, text] : expected) {
    const auto there = found.find(name);
    if (there == found.end()) return Damaged(db.path(), absl::StrCat("its schema has no ", name));
    if (there->second != text)
      return Damaged(db.path(), absl::StrCat("in its schema ", name, " is not as siding makes it"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> StartDraft(const std::string& path) {
  std::string draft = path + ".new";
  // Left by one that died here; it was never the journal.
  for (const char* part : {"", "-journal"}) unlink((draft + part).c_str());
  UniqueFd file(open(draft.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) return ErrnoError(errno, absl::StrCat("make ", draft));
  return draft;
}

absl::Status MakeJournalFile(const std::string& path) {
  SIDING_ASSIGN_OR_RETURN(const std::string draft, StartDraft(path));
  {
    SIDING_ASSIGN_OR_RETURN(Database db, Database::Open(draft, Database::Mode::kReadWrite));
    SIDING_RETURN_IF_ERROR(LetItShrink(db));
    SIDING_RETURN_IF_ERROR(MigrateFrom(db, 0));
  }
  return PutInPlace(draft, path);
}

absl::Status Migrate(Database& db) {
  SIDING_ASSIGN_OR_RETURN(const int64_t version, SchemaOf(db));
  if (version < kJournalSchema) {
    const std::string copy = absl::StrCat(db.path(), ".schema", version);
    SIDING_RETURN_IF_ERROR(CopyJournal(db.path(), copy));
    SIDING_RETURN_IF_ERROR(MigrateFrom(db, version));
    spdlog::info("{}: schema {} has become {}; as it was before it is kept as {}", db.path(), version,
                 kJournalSchema, copy);
  }
  return LetItShrink(db);
}

}  // namespace siding
