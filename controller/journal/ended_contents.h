// What the journal need not keep of jobs that have ended: long environments, and of long commands all but
// their beginning. They are not read again, and a user could fill the disk with them until their jobs are
// forgotten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/status/statusor.h"
#include "controller/journal/database.h"
#include "controller/journal/journal.h"

namespace siding {

// Remembers nothing on disk: after a restart all ended jobs are looked at once more. Not thread-safe.
class EndedContents {
 public:
  // An event that is in the journal, in order. Those that end a job are remembered.
  void Add(const Event& event);
  bool Done() const { return ended_.empty(); }
  // Shortens the `submitted` events of the next jobs, within a transaction of the caller's. To be followed by
  // Committed() if that is committed.
  absl::Status DropSome(Database& db);
  void Committed();

 private:
  struct Ended {
    int64_t seq = 0;  // a number may be used again for another job, later
    JobId job;
  };
  std::deque<Ended> ended_;
  size_t done_ = 0;  // of the first of them, once it is committed
};

}  // namespace siding
