// A cluster at a moment.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "common/ids.h"
#include "controller/platform/kubernetes/watch/job_table.h"

namespace siding::kubernetes {

// What an agent on each node would know of it and of its pods.
struct ClusterNow {
  struct Machine {
    NodeId id;
    std::string uid;
    Resources allocatable;
  };
  std::set<NodeId> nodes;         // all, also those that are not ready
  std::vector<Machine> machines;  // that are ready
  std::vector<PodTask> tasks;
  std::vector<PlainPod> plain;
};

}  // namespace siding::kubernetes
