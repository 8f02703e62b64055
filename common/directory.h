// Names in folders, and the files behind them. No call throws.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace siding {

// The names in a folder, in no order. kNotFound if there is none.
absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path);

// False as well if it cannot be looked at.
bool IsFolder(const std::string& path);

// Whether the open file has that name still: it may have been renamed or removed since it was opened, as
// between open() and flock().
bool IsNamed(int fd, const std::string& path);

}  // namespace siding
