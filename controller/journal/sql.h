// The little that the journal and its lease ask of SQLite. Errors have SQLite's words; kUnavailable: somebody
// else has the database locked.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace siding {

// An existing database, to be closed by the caller. Whoever finds it locked waits for so long.
absl::StatusOr<sqlite3*> SqlOpen(const std::string& path, int busy_ms);
absl::Status SqlRun(sqlite3* database, const std::string& sql);
// The first column of the first row, or `otherwise` if there is none or it is NULL.
absl::StatusOr<int64_t> SqlNumber(sqlite3* database, const std::string& sql, int64_t otherwise);

}  // namespace siding
