// The job of which this process is a task, as siding says it in the environment.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace siding::launch {

struct Gang {
  int rank = 0;                        // of this task
  std::vector<std::string> addresses;  // of all tasks, by rank
  std::string link;                    // the network device that leads to them
  int slots = 1;                       // of each task
};

// A variable's value, or null: std::getenv.
using Environment = std::function<const char*(const char* name)>;

// kFailedPrecondition: this is no job that keeps its connections. kInvalidArgument names a variable that is
// not what siding writes.
absl::StatusOr<Gang> FindGang(const Environment& environment);

}  // namespace siding::launch
