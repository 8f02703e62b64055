// A cluster at a moment, and who is to leave it.
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

// A pod that is to go.
struct Eviction {
  JobId job;
  ObjectName pod;
  std::string uid;
  bool at_once = false;  // nothing of it runs any more: it is given no time to end
  // Its image counts: with the pod nothing is lost, and there is nothing that a budget could protect.
  bool saved = false;
  bool only_ask = false;  // it is only asked whether it could be evicted, once
};

}  // namespace siding::kubernetes
