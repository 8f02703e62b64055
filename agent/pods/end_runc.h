// How a runc is ended that does not end by itself, with the criu that it has started.
#pragma once

#include <sys/types.h>

#include "common/units.h"

namespace siding {

// How long CRIU has to undo what it has begun.
inline constexpr Duration kRuncUndoPatience = std::chrono::seconds(10);

enum class RuncWork { kDump, kRestore };

// `runc`: a child of this process that has not been reaped, and is not reaped here. CRIU undoes what it has
// begun when nobody answers its next question, and nobody does once runc has ended. What has not ended after
// `undo` is ended by force: those very processes, whatever has their numbers by then. Of a restore only CRIU
// is waited for: what it has made does not end by itself.
void EndRunc(pid_t runc, RuncWork work, Duration undo = kRuncUndoPatience);

}  // namespace siding
