// Files that somebody else names: credentials and settings.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace siding::kubernetes {

// The whole file. kInvalidArgument if it is larger than 1 MiB; a device or a pipe without end does not hold
// it up. Errors name the file alone.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path);

}  // namespace siding::kubernetes
