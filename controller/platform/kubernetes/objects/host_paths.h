// Folders of the nodes that are the same on every node, by the word of the administrator: a pod that has one
// of them mounted finds on another node what it had. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace siding::kubernetes {

struct HostPaths {
  std::vector<std::string> read_only;  // for pods that mount them read-only
  std::vector<std::string> read_write;
};

// As it is compared: without "." and slashes that say nothing. kInvalidArgument: it does not begin at the
// root, is the root, or has ".." in it. Links are not followed: they are the node's.
absl::StatusOr<std::string> PlainHostPath(const std::string& path);

// Whether this folder, or one above it, is among them. Of plain ones: "/data" covers "/data/a", and not
// "/database".
bool IsBelow(const std::string& path, const std::vector<std::string>& folders);

}  // namespace siding::kubernetes
