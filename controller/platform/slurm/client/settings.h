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
  // So much may the time that they have waited set the priorities of two jobs apart that are alike.
  int64_t priority_by_age = 0;
  bool operator==(const Settings&) const = default;
};

// "99,100-102"; what is no number, "(null)" for one, is left out.
std::vector<int> ParseExits(const std::string& text);
// A path as Slurm prints it; "" for "(null)".
std::string ParsePath(const std::string& text);

// From PriorityType and PriorityWeightAge.
int64_t PriorityByAge(const std::string& type, int64_t weight);

// kInvalidArgument if it is no such text.
absl::StatusOr<Settings> ParseSettings(const std::string& text);

// What keeps siding from bringing checkpointed jobs back under these settings, or makes its jobs other than
// Slurm's own: one line each, for people, naming the setting and what comes of it.
std::vector<std::string> ProblemsOf(const Settings& settings);

}  // namespace siding::slurm
