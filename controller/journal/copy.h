// A whole copy of a journal that is in use.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"

namespace siding {

class Database;

// Told of pages now and then; false: stop, with kCancelled.
using CopyProgress = std::function<bool(int64_t done, int64_t total)>;

// Copies the journal as it is at one moment, over a connection of its own: appends do not
// wait. The copy (mode 0600) appears all at once, durable, in one file, and says of itself that it is a
// copy; one that was there is replaced. On failure nothing is left behind. May be called from any thread.
absl::Status CopyJournal(const std::string& from, const std::string& to,
                         const CopyProgress& progress = nullptr);

// The same over the connection that appends, for a journal that cannot be written while another
// connection reads it: appends are let in every few pages, and the copy has them, too. Connections are
// SQLite's to serialize, so this may be another thread than the one that appends.
absl::Status CopyBetweenAppends(Database& from, const std::string& to,
                                const CopyProgress& progress = nullptr);

// Makes `draft` durable, and renames it to `path`.
absl::Status PutInPlace(const std::string& draft, const std::string& path);

}  // namespace siding
