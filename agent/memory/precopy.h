// What the processes of a task have written is copied while they run (pre-copy), in rounds: each takes what
// was written since the one before.
//
// A page is protected while all threads of the task are stopped, for a moment, and copied while they run. Who
// stores to it meanwhile makes it a written page, which is copied again: in the next round, or while the task
// is stopped for the dump. Protecting it while they run could miss what the kernel is about to write past the
// page tables (a read of O_DIRECT).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/memory/captured_pages.h"
#include "agent/memory/memory_tracking.h"
#include "agent/os/stop_tree.h"
#include "common/units.h"

namespace siding {

// Not thread-safe. All that it is given outlives it.
class Precopy {
 public:
  // For so many dumps there are no rounds after one in which they were of no use: they cost the task page
  // faults.
  static constexpr int kRest = 8;

  // Of these processes, which are tracked and have so many bytes, below `init`. The copies come to `to`, and
  // what is known of them to MemoryTracking::Process::precopied.
  Precopy(MemoryTracking& tracking, pid_t init, std::vector<pid_t> pids, uint64_t all, CapturedPages& to)
      : tracking_(tracking), init_(init), pids_(std::move(pids)), all_(all), to_(to) {}

  // For as long as they pay. `stop` is asked all the time: true ends them. Not OK: no other is to follow.
  absl::Status Rounds(const std::function<bool()>& stop);
  // One more, if there is enough to copy, and room for it.
  absl::Status OneMore(const std::function<bool()>& stop);
  // By each round, at most.
  Duration stopped() const { return stopped_; }

 private:
  using Laps = std::map<pid_t, std::vector<PageRun>>;  // what each has written, in pages

  uint64_t ToCopy() const;  // bytes
  // It is on the disk twice for a while.
  bool IsTooMuch(uint64_t bytes) const { return (to_.bytes() + bytes) * 2 > all_; }
  absl::StatusOr<bool> Round(const std::function<bool()>& stop);
  absl::StatusOr<bool> Protect(Laps& laps);
  absl::Status ProtectStopped(const StoppedTree& tree, Laps& laps);

  MemoryTracking& tracking_;
  const pid_t init_;
  const std::vector<pid_t> pids_;
  const uint64_t all_;
  CapturedPages& to_;
  Duration stopped_{0};
  bool is_first_ = true;
};

}  // namespace siding
