// How CRIU is to behave with a container, which has no place in the container's description. runc gives CRIU
// a file that the description names, at each dump and restore.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace siding {

// The bundle's description names the file from now on. Before the container is made.
absl::Status NameCriuSettings(const std::string& bundle);
// Connections are restored only if both ends are in the image. `connections`: they are; else the dump of a
// container that has some fails.
absl::Status WriteCriuSettings(const std::string& bundle, bool connections);

}  // namespace siding
