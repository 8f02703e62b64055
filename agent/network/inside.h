// Work inside of another network namespace.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files.h"

namespace siding {

// Calls `act` in the network behind `netns_fd`, on a thread of its own: no other thread's network changes.
// What `act` returns, or why that network cannot be entered. A socket that it makes stays of that network.
// For root. Thread-safe.
absl::Status InNetwork(int netns_fd, const std::function<absl::Status()>& act);

// A new network, in which `act` was called; nothing of it is left if that fails. For root. Thread-safe.
absl::StatusOr<UniqueFd> MakeNetwork(const std::function<absl::Status()>& act);

// The one that the calling thread is in.
absl::StatusOr<UniqueFd> OpenOwnNetwork();

}  // namespace siding
