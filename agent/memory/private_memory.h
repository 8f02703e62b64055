// A process's private anonymous memory: heaps, stacks, and what was mapped without a file. Of what a process
// has this is nearly all that changes, and what can be tracked (write_tracker.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace siding {

struct MemoryArea {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool operator==(const MemoryArea&) const = default;
};

struct ProcessMaps {
  std::vector<MemoryArea> areas;  // that are private and anonymous, by address
  // It has made a ring for asynchronous I/O (io_setup, io_uring_setup). The kernel may write to its memory
  // while it is stopped.
  bool has_ring = false;
};

// From the text of /proc/PID/maps. Lines that are not understood are left out.
ProcessMaps ParseMaps(absl::string_view maps);
absl::StatusOr<ProcessMaps> ReadMaps(pid_t pid);

}  // namespace siding
