// What has come to processes and has not been taken by them, and is in no image: datagrams, events.
#pragma once

#include <sys/types.h>

#include <string>

namespace siding {

// What there is at this moment, of the tree of `root` ("process 17 (solver) has not read the datagrams that
// have come to its socket (udp), which would be lost"); empty: nothing. A process that runs may be about to
// read it. For root.
std::string FindQueued(pid_t root);

}  // namespace siding
