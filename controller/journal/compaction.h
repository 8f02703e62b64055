// What is left to be taken out of the journal: the events of jobs that have been forgotten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "controller/journal/database.h"

namespace siding {

// Remembers nothing on disk: `forgotten` events stay in the journal until what they name has been removed,
// and the last of them for ever, since it says what all forgotten jobs add up to. Not thread-safe.
class Compaction {
 public:
  // The event `seq` forgets these jobs. In the order of the journal.
  void Add(int64_t seq, std::vector<JobId> jobs);
  bool Done() const;
  // Removes the next few events, within a transaction of the caller's, and says how many. To be followed by
  // Committed() if that is committed.
  absl::StatusOr<int64_t> RemoveSome(Database& db);
  void Committed();

 private:
  struct Forgotten {
    int64_t seq = 0;
    std::vector<JobId> jobs;
    size_t done = 0;  // so many of the jobs have no event left
  };
  std::deque<Forgotten> left_;
  size_t next_done_ = 0;  // of the first of them, once it is committed
  bool next_pop_ = false;
};

}  // namespace siding
