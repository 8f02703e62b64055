// How a runc is ended that does not end by itself, with the criu that it has started.
#pragma once

#include <sys/types.h>

#include "common/units.h"

namespace siding {

// How long CRIU has to undo what it has begun.
inline constexpr Duration kRuncUndoPatience = std::chrono::seconds(10);

// `runc`: a child of this process that has not been reaped, and is not reaped here. CRIU undoes what it has
// begun when nobody answers its next question, and nobody does once runc has ended. What has not ended after
// `undo` is ended by force: those very processes, whatever has their numbers by then.
void EndRunc(pid_t runc, Duration undo = kRuncUndoPatience);

}  // namespace siding
