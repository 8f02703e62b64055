// The event log: what the controller knows after a restart. SQLite, synchronous=FULL.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "controller/journal/copy.h"
#include "model/event.h"

namespace siding {

class Lease;

// Not thread-safe, but for Read(): the engine calls the rest under its lock.
class Journal {
 public:
  virtual ~Journal() = default;
  // All or none; durable when it returns OK. Sequence numbers must follow on the last one.
  // kAborted if another controller has taken the journal over: nothing may be decided or done any more.
  virtual absl::Status Append(const std::vector<Event>& events) = 0;
  // OK: no other controller had taken it over by now. For what is done without an Append() before it.
  virtual absl::Status Confirm() { return absl::OkStatus(); }
  // All events, in order. kDataLoss if one is missing.
  virtual absl::Status Replay(const std::function<void(const Event&)>& visit) = 0;
  // The first events with seq > after, in order, at most `limit`. Thread-safe, also beside an Append().
  virtual absl::StatusOr<std::vector<Event>> Read(int64_t after, size_t limit) const = 0;
  // Takes some of what is not needed any more out of it, in one transaction that takes milliseconds: the
  // events of forgotten jobs, the long commands and environments of ended ones. True if there is more to do.
  virtual absl::StatusOr<bool> Compact() { return false; }
  // A whole copy of it at `to`: see copy.h. Thread-safe, also beside an Append(), which it keeps waiting for
  // milliseconds at most.
  virtual absl::Status Copy(const std::string& to, const CopyProgress& /*progress*/) {
    return absl::UnimplementedError(to + ": this journal is not in a file");
  }
  // Drawn when it was made, and the same in all its copies: tells what its cluster has from what others have.
  // 0: it has none.
  virtual int64_t cluster() const { return 0; }
  // The last event of a copy that was put back, until a JournalRestored is appended; 0: it is none.
  virtual int64_t restored() const { return 0; }
};

// Opens or makes the database at `path`; `lease`, which must outlive it, is claimed before any event or table
// is changed (a copy is marked as put back, and the log's mode is set, before that). kDataLoss if damaged,
// kFailedPrecondition if a newer siding wrote it or another was faster, kUnavailable if it is kept locked.
absl::StatusOr<std::unique_ptr<Journal>> OpenSqliteJournal(const std::string& path, Lease& lease);
// The same with a lease of its own, where no other controller takes over.
absl::StatusOr<std::unique_ptr<Journal>> OpenSqliteJournal(const std::string& path);
// For tests: kept in memory.
std::unique_ptr<Journal> NewMemoryJournal();

// One event as JSON and back; the format is in docs/design/journal-format.md.
std::string EncodeEventBody(const Event& event);
absl::StatusOr<EventBody> DecodeEventBody(const std::string& kind, const std::string& json);
// The variant's name as stored: "submitted", "moved", "rank-exited", ...
std::string BodyKind(const EventBody& body);

}  // namespace siding
