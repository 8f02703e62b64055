// What a CRIU leaves behind that has been ended in the middle of a dump.
#pragma once

#include <sys/types.h>

namespace siding {

// Switches repair mode off (TCP_REPAIR) for the TCP sockets of the tree of `root` that are in it, and returns
// how many there were. CRIU puts connections into it to read their queues, and while they are, the job's own
// calls fail (EPERM). To be called when no CRIU is at work on the tree any more: the processes run, so the
// sooner the better. For root.
int EndRepair(pid_t root);

}  // namespace siding
