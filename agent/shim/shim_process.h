// Starting a task's shim, and finding it again.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files.h"

namespace siding {

// Starts `program` for the task in `folder`, which must hold request.json. Returns a pidfd. The shim is in a
// session of its own and holds a lock on folder/shim.lock as long as it lives.
absl::StatusOr<UniqueFd> StartShim(const std::string& program, const std::string& folder);

// For a child between fork() and exec: it becomes a shim in a session of its own, with `null` as its input
// and `log` for what it says, and with no other descriptor but `lock`, if there is one. System calls only:
// the parent may have other threads.
[[noreturn]] void BecomeShim(const char* const* argv, int null, int log, int lock = -1);

// A pidfd of the living shim of that folder; kNotFound if there is none. Any other error says nothing of
// that.
absl::StatusOr<UniqueFd> FindShim(const std::string& folder);

// Ends the shim of that folder by force, if there is one, and waits for its end.
absl::Status EndShim(const std::string& folder);

enum class ShimWait { kEnded, kWoken, kRunning };
// Waits until the process has ended, `wake` becomes readable or, if `most_ms` is not negative, so many
// milliseconds have passed. A child is reaped.
ShimWait WaitForShim(const UniqueFd& pidfd, int wake, int most_ms = -1);

}  // namespace siding
