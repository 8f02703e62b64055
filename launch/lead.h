// Rank 0: runs mpirun.
#pragma once

#include "absl/status/statusor.h"
#include "launch/arguments.h"
#include "launch/gang.h"

namespace siding::launch {

// Waits for the other tasks, runs mpirun to its end, and has the others end. Returns mpirun's exit code.
// Signals go to mpirun; of those that ask it to end only the first, for it takes a second one for impatience.
// kNotFound: there is no mpirun. kDeadlineExceeded names the rank that has not come.
absl::StatusOr<int> Lead(const Gang& gang, const Arguments& arguments);

}  // namespace siding::launch
