// The descriptors of a process tree, each process looked at once.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/files.h"

namespace siding {

struct OpenDescriptor {
  pid_t pid = 0;
  int fd = 0;
  std::string target;    // where its link in /proc leads
  uint64_t socket = 0;   // its inode, if it is a socket
  std::string protocol;  // of a socket, as the kernel calls it ("TCPv6"), with the first of its descriptors
  std::string link() const;    // in /proc
  std::string fdinfo() const;  // the text of that file; empty if the descriptor is gone
};

struct OpenDescriptors {
  std::vector<OpenDescriptor> all;
  pid_t hidden = 0;  // a process that this one may not look into; 0: there is none
};

OpenDescriptors FindDescriptors(const std::vector<pid_t>& tree);

// The same file, opened nowhere, for a moment: what a process closes meanwhile is closed when this is. For
// root. Not valid: the process has closed it.
UniqueFd Borrow(const OpenDescriptor& descriptor);

}  // namespace siding
