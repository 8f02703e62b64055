// The way to siding's sockets on this machine.
#pragma once

namespace siding::spank {

// A connection that never blocks: whoever hangs must not hang Slurm, and a queue that is full is an error. -1
// with errno set if there is none.
int Connect(const char* path);

}  // namespace siding::spank
