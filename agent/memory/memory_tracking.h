// What is known, from one checkpoint of a task to its next, of the pages that its processes write.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

#include "agent/memory/precopied_pages.h"
#include "agent/memory/write_tracker.h"
#include "common/units.h"
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
    // What the tracker does not say again, since a dump that does not count has taken it.
    PrecopiedPages precopied;
  };
  // Every page that a tracker says is unchanged is as it is in this image, which counts.
  std::optional<ImageKey> since;
  std::map<pid_t, Process> processes;
  int without_base = 0;      // so many images in a row had none
  uint64_t images = 0;       // that counted
  int rest_from_rounds = 0;  // for so many dumps nothing is copied while the task runs
  // One of them has changed flags of its memory while it was dumped: they are read when it is stopped.
  bool flags_change = false;
  // A thread that waits in the kernel stops all the others of the task for as long.
  Duration stop_patience = std::chrono::milliseconds(30);
  // Something has gone wrong with it, and it is not tried again with this task.
  bool given_up = false;

  void Forget() {
    since.reset();
    processes.clear();
  }
};

}  // namespace siding
