// Which of the node's mounts a job gets. Pure.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace siding {

struct Mount {
  std::string point;  // "/run/user/1000"
  std::string type;   // of the file system: "tmpfs"
  bool operator==(const Mount&) const = default;
};

// The lines of /proc/PID/mountinfo; what is none is left out.
std::vector<Mount> ParseMounts(const std::string& mountinfo);

// Whether it belongs to something that comes and goes on the node and is no business of this user's jobs: a
// namespace with a name, another user's session, a container, a service's credentials, siding's own images. A
// checkpoint contains all mounts of its job, and is restored only where they are; one of these would be
// missed when the other has ended.
bool IsTransient(const Mount& mount, uid_t user);

}  // namespace siding
