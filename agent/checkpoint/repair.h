// What a CRIU leaves behind that has been ended in the middle of a dump.
#pragma once

#include <sys/types.h>

#include <string>

namespace siding {

// Switches repair mode off (TCP_REPAIR) for the TCP sockets of the tree of `root` that are in it, and returns
// how many there were. CRIU puts connections into it to read their queues, and while they are, the job's own
// calls fail (EPERM). To be called when no CRIU is at work on the tree any more, and the sooner the better if
// the processes are not held. For root.
int EndRepair(pid_t root);

// Lets processes run that a CRIU has held (CriuDump::hold); empty: nothing to do. It may have held none.
void EndHold(const std::string& cgroup);

}  // namespace siding
