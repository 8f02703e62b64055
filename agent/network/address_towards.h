// At which of this machine's addresses others reach it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace siding {

// From which it reaches the first of these ("HOST:PORT", "[fd00::1]:PORT") to which there is a way; the
// loopback's if that is on this machine, or all are unix sockets. Nothing is sent there, but a name server
// may be asked. kUnavailable: there is a way to none.
absl::StatusOr<std::string> AddressTowards(const std::vector<std::string>& others);

}  // namespace siding
