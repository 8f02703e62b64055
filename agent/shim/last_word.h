// What a shim says at the end: how its task ended, or why it did not start. Nobody else knows, so no state
// folder that is full or read-only for a while may lose it.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/units.h"

namespace siding {

// Blocks for it, taken before the task starts: a disk that is full by then has no others.
inline constexpr size_t kLastWordRoom = 4096;
absl::Status MakeRoomForLastWord(const std::string& folder);

// As WriteFileDurably(). In the room, where there is some and the text fits into it.
absl::Status WriteLastWord(const std::string& folder, const std::string& name, absl::string_view text);

// Calls `write` until it succeeds, with pauses up to a few seconds. As long as this process lives, the agent
// takes the task for one that lives: it asks again, and starts nothing a second time.
//
// Two errors are returned. kNotFound, at once: the folder is gone, and nobody will ask. And the last one,
// after `told_patience`, when `told` says that this process is to end: the machine shuts down, and ends it by
// force minutes later.
inline constexpr Duration kToldPatience = std::chrono::seconds(20);
absl::Status WriteUntilDone(const std::function<absl::Status()>& write, const std::function<bool()>& told,
                            Duration told_patience = kToldPatience);

}  // namespace siding
