// Whether what has been sent has arrived.
#pragma once

#include <set>

#include "absl/status/statusor.h"
#include "common/units.h"

namespace siding {

enum class Drained {
  kYes,     // no TCP connection has sent what is not acknowledged, or is being made
  kNotYet,  // it is sent again as long as its connection is there
  // Of a connection that its processes have closed, which is in no image:
  kEnds,     // that it has been closed
  kOrphans,  // bytes
};

// Connections that processes have closed whose last bytes need not arrive.
struct NotCounted {
  std::set<int> ranks;       // to these
  Duration most_silence{0};  // to who has acknowledged nothing, not even a probe, for so long; 0: to nobody
};

// Of the network that the calling thread is in, at this moment. Thread-safe.
absl::StatusOr<Drained> LookAtConnections(const NotCounted& not_counted = {});

}  // namespace siding
