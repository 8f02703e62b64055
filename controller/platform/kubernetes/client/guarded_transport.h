// A way to the API server on which nothing is changed unless a guard allows it, each time: of two
// controllers, only the one that decides may act.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "controller/platform/kubernetes/client/transport.h"

namespace siding::kubernetes {

// What the guard says against a change is the change's error. Looking (GET) is not guarded. The guard is
// called on the threads of the callers.
std::unique_ptr<Transport> NewGuardedTransport(std::unique_ptr<Transport> transport,
                                               std::function<absl::Status()> may_act);

}  // namespace siding::kubernetes
