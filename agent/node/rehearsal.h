// Runs a rehearsal (agent/checkpoint/rehearsal.h) in a process of its own, siding-shim --rehearse.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "agent/task/shim.pb.h"
#include "common/units.h"

namespace siding {

// Blocks until CRIU has taken the image, or has not; `patience` at most, and no longer than until `stop` is
// true. The processes that it makes have ended by then, as they do if this process ends. `folder` is made for
// it, and keeps CRIU's log.
//
// OK: CRIU takes the image. A refusal (IsRefusal): it does not, and blames nothing around it. Any other error
// says nothing of the image. Thread-safe; the calling thread must live until it returns.
absl::Status RunRehearsal(const std::string& shim, const std::string& folder,
                          const agent::ShimRequest& request, Duration patience,
                          const std::function<bool()>& stop);

}  // namespace siding
