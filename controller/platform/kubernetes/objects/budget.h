// A PodDisruptionBudget as siding sees it. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/platform/kubernetes/client/object.h"
#include "controller/platform/kubernetes/objects/placement.h"
#include "controller/platform/kubernetes/objects/pod.h"

namespace siding::kubernetes {

struct Budget {
  ObjectName name;
  std::vector<Requirement> labels;  // of the pods that it covers: all of these
  bool covers_any = false;          // there are such pods, by its controller's count
  int lets_go = 0;                  // so many of them may be evicted now
};
Budget BudgetFrom(const Object& object);

// The server asks budgets about pods that are ready, and about no others.
bool IsReady(const Pod& pod);
bool Covers(const Budget& budget, const Pod& pod);

}  // namespace siding::kubernetes
