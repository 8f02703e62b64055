// A node as siding sees it. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/platform/kubernetes/client/object.h"
#include "controller/platform/kubernetes/objects/needs.h"
#include "controller/platform/kubernetes/objects/placement.h"

namespace siding::kubernetes {

struct Node {
  Object object;
  std::map<std::string, std::string> labels;
  std::vector<Taint> taints;
  bool cordoned = false;
  bool ready = false;
  std::string why_not_ready;  // the kubelet's words, or that it is not heard of
  Amounts allocatable;        // for pods, all of them together
  int most_pods = 0;
  std::string problem;    // what of it cannot be read; then `allocatable` is nothing
  bool outdated = false;  // siding has changed it since, or may have
};
Node NodeFrom(const Object& object);

}  // namespace siding::kubernetes
