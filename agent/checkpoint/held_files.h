// What a task has open, and what its user could open.
#pragma once

#include <sys/types.h>

#include "absl/status/status.h"
#include "agent/os/account.h"

namespace siding {

// CRIU opens a task's files as root, by the names that they had at the checkpoint. Between a checkpoint and
// its restore, and during both, the job's user controls these names: a folder that has become a
// link would have root open another user's file, and give it to the job.
//
// So before the restored processes run, everything that they have open or mapped, run or work in is looked at
// itself: its user must be able to reach the very same file by its real name, and to open it in the same way,
// or own it. Before a checkpoint the same is asked, so that nothing is saved that would not be given back.
//
// kPermissionDenied says which process has what. For root. Thread-safe.
absl::Status CheckHeldFiles(pid_t init, const Account& user);

}  // namespace siding
