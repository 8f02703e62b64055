// The journal's file before it is opened: made if there is none, taken over if it is a copy that was put
// back, and refused if what lies there is not all of it.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace siding {

// SQLite takes a file without a byte for an empty database, and a log beside it for its own, whatever wrote
// it. kDataLoss or kFailedPrecondition, saying what to do, where that would lose or mix up journals.
absl::Status PrepareJournalFile(const std::string& path);

}  // namespace siding
