// Is this file a whole journal?
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/units.h"

namespace siding {

struct JournalSummary {
  int64_t schema = 0;
  int64_t events = 0;  // that it has; others of forgotten jobs were removed
  int64_t last = 0;    // the number of the newest
  Time last_at;        // when that was
};

// Reads all of a copy: its pages, and every event. Changes nothing. kDataLoss says what is wrong with it,
// kFailedPrecondition that it is one that is in use, or a newer siding's.
absl::StatusOr<JournalSummary> CheckJournalCopy(const std::string& path);

}  // namespace siding
