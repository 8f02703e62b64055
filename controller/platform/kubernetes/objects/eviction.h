// A pod that is to leave its node. A value.
#pragma once

#include <string>

#include "common/ids.h"
#include "controller/platform/kubernetes/client/object.h"

namespace siding::kubernetes {

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
