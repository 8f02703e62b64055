#include "controller/journal/check.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/journal/database.h"
#include "controller/journal/event_row.h"
#include "controller/journal/schema.h"

namespace siding {
namespace {

bool HasLog(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path + "-wal", error);
  return !error && size > 0;
}

absl::Status ReadEvents(Database& db, JournalSummary& summary) {
  SIDING_ASSIGN_OR_RETURN(Statement select, SelectEvents(db, 0));
  int rc;
  while ((rc = sqlite3_step(select.get())) == SQLITE_ROW) {
    SIDING_ASSIGN_OR_RETURN(const EventRow row, ReadRow(db, select.get()));
    ++summary.events;
    summary.last = row.seq;
    summary.last_at = FromMicros(row.at_us);
  }
  return rc == SQLITE_DONE ? absl::OkStatus() : db.Error("read");
}

}  // namespace

absl::StatusOr<JournalSummary> CheckJournalCopy(const std::string& path) {
  if (HasLog(path)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " has a log beside it (", path,
                     "-wal): it is in use, or was when its controller died. "
                     "What can be checked is a copy, as sidingctl backup makes it"));
  }
  SIDING_ASSIGN_OR_RETURN(Database db, Database::Open(path, Database::Mode::kImmutable));
  SIDING_RETURN_IF_ERROR(db.Check());
  JournalSummary summary;
  SIDING_ASSIGN_OR_RETURN(summary.schema, SchemaOf(db));
  SIDING_RETURN_IF_ERROR(CheckSchemaText(db, summary.schema));
  if (summary.schema < kJournalSchema) {
    // It has no checksums, and nothing was ever removed.
    SIDING_ASSIGN_OR_RETURN(summary.events, db.Number("SELECT count(*) FROM events", 0));
    SIDING_ASSIGN_OR_RETURN(summary.last, db.Number("SELECT max(seq) FROM events", 0));
    SIDING_ASSIGN_OR_RETURN(const int64_t at, db.Number("SELECT max(at_us) FROM events", 0));
    summary.last_at = FromMicros(at);
  } else {
    SIDING_RETURN_IF_ERROR(ReadEvents(db, summary));
  }
  SIDING_ASSIGN_OR_RETURN(const int64_t removed, db.Meta("removed", 0));
  const int64_t missing = summary.last - removed - summary.events;
  if (missing != 0) return Damaged(path, absl::StrCat(missing, " events are missing"));
  return summary;
}

}  // namespace siding
