// The other ranks: run what mpirun starts on their nodes.
#pragma once

#include "absl/status/statusor.h"
#include "common/units.h"
#include "launch/gang.h"

namespace siding::launch {

// Does what rank 0 and its relays ask for until rank 0 says that mpirun has ended: 0 then. Signals that ask
// to end are told to rank 0, which has mpirun end all; before it has come, they end this task. Only rank 0's
// address is listened to. kDeadlineExceeded: rank 0 has not come within `patience`. kAborted: it has gone.
absl::StatusOr<int> Follow(const Gang& gang, Duration patience);

}  // namespace siding::launch
