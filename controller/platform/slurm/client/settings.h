// Slurm's own settings, as far as siding depends on them: docs/admin/slurm-site.md, "Slurm". Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace siding::slurm {

struct Settings {
  std::vector<int> requeue_exits;       // RequeueExit
  std::vector<int> requeue_hold_exits;  // RequeueExitHold
  bool requeues = false;                // JobRequeue
  bool keeps_output = false;            // JobFileAppend
  std::string task_prolog;              // TaskProlog: a path; empty: none
  bool operator==(const Settings&) const = default;
};

// "99,100-102"; what is no number, "(null)" for one, is left out.
std::vector<int> ParseExits(const std::string& text);
// A path as Slurm prints it; "" for "(null)".
std::string ParsePath(const std::string& text);

// kInvalidArgument if it is no such text.
absl::StatusOr<Settings> ParseSettings(const std::string& text);

// What keeps siding from bringing checkpointed jobs back under these settings, or makes its jobs other than
// Slurm's own: one line each, for people, naming the setting and what comes of it.
std::vector<std::string> ProblemsOf(const Settings& settings);

}  // namespace siding::slurm
