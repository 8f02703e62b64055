// What of an event is stored beside it, so that a changed byte in it is found: SQLite has no checksums.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace siding {

// Of an event's columns, as they are stored. The same on every machine, and for ever.
int64_t EventChecksum(int64_t seq, int64_t at_us, int64_t job, absl::string_view kind,
                      absl::string_view body);

}  // namespace siding
