// All threads of a tree of processes, stopped for a moment.
//
// By ptrace, of which nothing but the stopping is used: no register and no memory of theirs is touched, so
// that they run on as they were when whoever has stopped them ends in the middle of it. That is a process of
// its own: the kernel can keep it waiting for as long as it likes (where a thread of theirs is just in
// execve()), and it is ended then, or with this one. What they can notice is that a system call that waits
// ends with EINTR (signal(7)), and the time.
#pragma once

#include <sys/types.h>

#include <functional>
#include <set>

#include "absl/status/status.h"
#include "common/units.h"

namespace siding {

struct StoppedTree {
  // Of which it is known: all that live, unless /proc could not be read.
  std::set<pid_t> processes;
  // False: they run. That is so after a minute, or if somebody has ended what stops them.
  std::function<bool()> is_held;
};

// Calls `act` while all threads of all processes of the tree are stopped, and none of them is in a system
// call: what one of them had asked the kernel to read into its memory (O_DIRECT) is there. When it returns
// they run again, and are not traced any more. What `act` returns or, where it was not called:
// kFailedPrecondition if one of them is traced by somebody, or there are none; kDeadlineExceeded if one does
// not stop within `patience`: it waits in the kernel, for a disk or the child of a vfork(). kAborted: `act`
// was called, and they ran before it returned.
absl::Status WhileStopped(pid_t root, Duration patience,
                          const std::function<absl::Status(const StoppedTree& tree)>& act);

// It is such a process, of a WhileStopped() in this one. Thread-safe.
bool IsStopping(pid_t pid);

}  // namespace siding
