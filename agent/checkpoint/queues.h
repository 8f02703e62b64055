// What has come to processes and has not been taken by them, and is in no image: datagrams, events.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "agent/checkpoint/descriptors.h"

namespace siding {

// Of the tree of `root`, which has the descriptors.
class Queues {
 public:
  Queues(pid_t root, const std::vector<OpenDescriptor>& descriptors);

  // What there is at this moment ("process 17 (solver) has not read the datagrams that have come to its UDP
  // socket"); empty: nothing. For root.
  std::string Find() const;

  // The same, but a process that reads what comes to it gets half a second to do so.
  std::string FindLasting() const;

 private:
  std::string FindInTables() const;

  const pid_t root_;
  std::vector<OpenDescriptor> inet_, unix_, inotify_;
};

// The same of a tree as it is now.
std::string FindQueued(pid_t root);

}  // namespace siding
