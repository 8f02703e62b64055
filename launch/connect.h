// Sockets of the tasks of a job.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "common/files.h"
#include "common/units.h"

namespace siding::launch {

inline constexpr int kPort = 7783;

// At an IPv4 address of this machine. The error names it.
absl::StatusOr<UniqueFd> Listen(const std::string& address, int port);

// The next connection at a listening socket if it is one from `address`; else, or if none is there, an
// invalid descriptor.
UniqueFd Accept(const UniqueFd& listener, const std::string& address);

// From an address of this machine. Tries again and again until somebody listens there. kDeadlineExceeded:
// nobody does within `patience`; kCancelled: `stop`, which is asked at least once a second, has said so.
absl::StatusOr<UniqueFd> Connect(const std::string& from, const std::string& address, int port,
                                 Duration patience, const std::function<bool()>& stop);

}  // namespace siding::launch
