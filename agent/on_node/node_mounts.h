// The way out of a container, to the mounts of its node.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"

namespace siding {

// From then on this process sees the mounts and the cgroups that `process` sees, and with them each mount
// that is made there later, but in a mount namespace of its own: how names are found stays as it was, that is
// /etc/resolv.conf, /etc/hosts and /etc/nsswitch.conf. `folder`, on the node, holds what that takes. Only for
// a process with one thread, with CAP_SYS_ADMIN, CAP_SYS_CHROOT and CAP_SYS_PTRACE.
absl::Status EnterMountsOf(pid_t process, const std::string& folder);

// Whether mounts that are made below `/` later come to who has a copy, by the text of mountinfo.
bool MountsAreShared(const std::string& mountinfo);

}  // namespace siding
