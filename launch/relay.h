// Stands in for ssh: mpirun calls it to have a command run on another rank's node.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/gang.h"

namespace siding::launch {

// `words`: the rank's address and the command, which goes to a shell there as ssh would have it. Returns its
// exit code when it has ended. What it says goes to that rank's output. kInvalidArgument: it is no other
// rank's address. kUnavailable: that task has gone.
absl::StatusOr<int> Relay(const Gang& gang, const std::vector<std::string>& words);

}  // namespace siding::launch
