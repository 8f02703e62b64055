// Slurm's own settings as `scontrol show config` shows them, as far as siding depends on them. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/units.h"

namespace siding::slurm {

struct Settings {
  std::string cluster;
  std::string version;  // "22.05.8"
  std::vector<int> requeue_exits;
  bool keeps_output = false;  // JobFileAppend
  Duration requeue_delay{};   // the least time before a requeued job starts again
};

// kInvalidArgument if it is no such text.
absl::StatusOr<Settings> ParseSettings(const std::string& text);

// What keeps siding from checkpointing jobs under these settings: one line each, naming the setting.
std::vector<std::string> ProblemsOf(const Settings& settings);

}  // namespace siding::slurm
