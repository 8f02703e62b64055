// What is known, from one checkpoint of a task to its next, of the pages that its processes write.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>

#include "agent/memory/write_tracker.h"
#include "store/store.h"

namespace siding {

// Of one task. Not thread-safe: the task's dumps use it one after another (tracked_dump.h).
class MemoryTracking {
 public:
  // A process of this number that has another start time is another one.
  struct Process {
    uint64_t start_time = 0;
    std::optional<WriteTracker> tracker;  // nullopt: it is not tracked for now
    int rest = 0;                         // for so many dumps
  };
  // Every page that a tracker says is unchanged is as it is in this image, which counts.
  std::optional<ImageKey> since;
  std::map<pid_t, Process> processes;
  int without_base = 0;  // so many images in a row had none
  // Something has gone wrong with it, and it is not tried again with this task.
  bool given_up = false;

  void Forget() {
    since.reset();
    processes.clear();
  }
};

}  // namespace siding
