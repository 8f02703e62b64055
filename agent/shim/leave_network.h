// The end of a rank that has a network of its own.
#pragma once

#include <functional>

#include "agent/task/shim.pb.h"

namespace siding {

// What a rank has sent last arrives before it is known to have ended: its peers may be saved then, and nobody
// would have it. One that was ended says nothing more: its network is cut off. `stopped`: nobody waits for it
// any more.
void LeaveNetwork(int network, const agent::ShimExit& exit, const std::function<bool()>& stopped);

}  // namespace siding
