#include "controller/journal/event_row.h"

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/journal/checksum.h"

namespace siding {
namespace {

std::string TextIn(sqlite3_stmt* row, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
  if (text == nullptr) return "";
  return std::string(text, static_cast<size_t>(sqlite3_column_bytes(row, column)));
}

}  // namespace

absl::StatusOr<Statement> SelectEvents(Database& db, int64_t after, int64_t limit) {
  SIDING_ASSIGN_OR_RETURN(Statement select,
                          db.Prepare("SELECT seq, at_us, job, kind, body, checksum FROM events"
                                     " WHERE seq > ? ORDER BY seq LIMIT ?"));
  sqlite3_bind_int64(select.get(), 1, after);
  sqlite3_bind_int64(select.get(), 2, limit);
  return select;
}

absl::StatusOr<EventRow> ReadRow(const Database& db, sqlite3_stmt* row) {
  EventRow event{sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2),
                 TextIn(row, 3), TextIn(row, 4)};
  if (sqlite3_column_int64(row, 5) !=
      EventChecksum(event.seq, event.at_us, event.job, event.kind, event.body))
    return Damaged(db.path(), absl::StrCat("event ", event.seq, " is not as it was written"));
  return event;
}

}  // namespace siding
