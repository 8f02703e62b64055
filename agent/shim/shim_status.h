// What a shim leaves in its task's folder; see shim.proto.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/shim/shim.h"
#include "agent/task/shim.pb.h"

namespace siding {

// That this process is the shim. Takes the room for what it says last, too: a task whose end could not be
// told is not started.
absl::Status WriteShim(const std::string& folder);

// Who the task's init is, before it runs: if this process dies before it has said more, the init can be
// found.
absl::Status WriteInit(const std::string& folder, pid_t init);

// That the task runs, or why it does not. On an error the task could not be found again: it has been ended.
absl::Status WriteStart(const std::string& folder, const absl::StatusOr<ShimTask>& task, bool restore);

// What a wait status means: siding-init, like every shell, says 128 + number for a signal.
agent::ShimExit ExitOf(int wait_status);

// In the room that WriteShim() has taken: it is written on a full disk, too.
absl::Status WriteExit(const std::string& folder, const agent::ShimExit& exit);

}  // namespace siding
