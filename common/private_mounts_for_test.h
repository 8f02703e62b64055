// Mounts that only this test sees: one in the namespace of all processes would become a part of each task
// that is started meanwhile, which could not be restored once the mount is gone.
#pragma once

#include <sched.h>
#include <sys/mount.h>

namespace siding {

// From now on, for this thread and the threads and processes that it starts. False, with errno, without the
// right to do so.
inline bool EnterPrivateMounts() {
  return unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

}  // namespace siding
