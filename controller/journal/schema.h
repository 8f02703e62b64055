// The journal's tables, and the way to them from those of earlier versions.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "controller/journal/database.h"

namespace siding {

// What this siding writes. docs/design/journal-format.md says what was new with each number.
inline constexpr int64_t kJournalSchema = 2;

// The schema of a journal. kFailedPrecondition if a newer siding wrote it, kDataLoss if it is none.
absl::StatusOr<int64_t> SchemaOf(Database& db);

// Whether its tables and indexes are those of `version`, as their text has them: no page has a checksum, and
// SQLite accepts a text of which a letter has changed, such as a name of a type. kDataLoss.
absl::Status CheckSchemaText(Database& db, int64_t version);

// An empty file of root's own beside `path`, to become it once it is whole (PutInPlace in copy.h). What was
// left of one that was never finished is removed.
absl::StatusOr<std::string> StartDraft(const std::string& path);

// Makes an empty journal of the present schema at `path`, all at once.
absl::Status MakeJournalFile(const std::string& path);

// Brings an older journal to the present schema, one transaction for each number. Before the first, a copy of
// it as it is is left beside it, as PATH.schemaN.
absl::Status Migrate(Database& db);

}  // namespace siding
