// One event as it lies in the table, before it is decoded.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "controller/journal/database.h"

namespace siding {

struct EventRow {
  int64_t seq = 0;
  int64_t at_us = 0;
  int64_t job = 0;
  std::string kind, body;
};

inline constexpr int64_t kAllEvents = -1;
// The first with seq > after, in order, at most `limit`: to be stepped through, and each row given to
// ReadRow.
absl::StatusOr<Statement> SelectEvents(Database& db, int64_t after, int64_t limit = kAllEvents);
// kDataLoss if it is not as it was written.
absl::StatusOr<EventRow> ReadRow(const Database& db, sqlite3_stmt* row);

}  // namespace siding
