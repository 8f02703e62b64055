// Settings of threads that CRIU neither saves nor restores, and that can be given to them from outside: CPUs,
// I/O priority, slack of timers, and what goes into a process's core dump.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace siding {

struct ThreadSettings {
  pid_t thread = 0;  // in its own pid namespace
  std::string cpus;  // it may run on ("0-3,7"); empty, here and below: as the task's init
  int io_priority = -1;
  int64_t timer_slack_ns = -1;
  std::string core_dump_filter;  // of its process, with the first of the threads
  bool operator==(const ThreadSettings&) const = default;
};

// Those of the tree's threads that have others than its root. The threads must be frozen. For root.
std::vector<ThreadSettings> RecordThreadSettings(pid_t root);

// A JSON array, the form kept in the image's metadata.
std::string ThreadSettingsToJson(const std::vector<ThreadSettings>& settings);
// kDataLoss if it is none.
absl::StatusOr<std::vector<ThreadSettings>> ThreadSettingsFromJson(const std::string& json);

// Gives them to the threads of a tree that has been restored. What they cannot have here is left as it is,
// such as CPUs of another node; a line for the job's owner says so. For root.
std::vector<std::string> PutThreadSettingsBack(pid_t root, const std::vector<ThreadSettings>& settings);

// "0-3,7" -> {0, 1, 2, 3, 7}; empty if it is no such list.
std::vector<int> ParseCpus(const std::string& list);

}  // namespace siding
