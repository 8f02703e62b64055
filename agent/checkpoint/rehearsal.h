// A rehearsal of a restore: CRIU takes back the image that it has just made, beside the processes that it was
// made of, and ends what it has made before the first instruction. What a dump accepts and no restore takes
// shows then, while nothing is lost yet.
//
// The new processes have a network, process numbers, mounts and IPC of their own, and so meet the frozen ones
// only in the file system. They write nothing there; but CRIU does, for some kinds of files, as it restores
// them, and these are not rehearsed.
#pragma once

#include <sys/types.h>

#include <string>

#include "common/units.h"

namespace siding {

// Why a restore beside these processes would do harm, or would fail though the image is good; empty: it may
// be rehearsed. `memory` is what they have, and what the new ones will need. The processes must be frozen.
// For root.
std::string WhyNotRehearsed(pid_t init, Bytes memory);

}  // namespace siding
