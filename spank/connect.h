// The way to siding's sockets on this machine.
#pragma once

namespace siding::spank {

// A connection that does not block. Where the listener's queue is full, room in it is waited for this long;
// with 0 that is an error: a peer that hangs must not hang Slurm. -1 with errno set if there is none.
int Connect(const char* path, int patience_ms);

}  // namespace siding::spank
