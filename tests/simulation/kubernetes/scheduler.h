// The cluster's own scheduler: binds pods that are not siding's to place, where there is room and nothing
// forbids it.
#pragma once

#include "tests/simulation/kubernetes/cluster.h"

namespace siding::simulation::pods {

// Not thread-safe.
class Scheduler {
 public:
  Scheduler(Lab& lab, Cluster& cluster) : lab_(lab), cluster_(cluster) {}
  void OnChange(const FakeStore::Event& event);

 private:
  void Look();
  bool MayBeOn(const Json& pod, const std::string& name, const Json& node) const;

  Lab& lab_;
  Cluster& cluster_;
  bool looks_soon_ = false;
};

}  // namespace siding::simulation::pods
