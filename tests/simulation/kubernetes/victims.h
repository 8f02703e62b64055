// Looks at whom siding makes leave for pods with a deadline, and when: that nobody leaves for nothing. What a
// controller could not know yet is not held against it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "controller/engine/state/cluster_state.h"
#include "tests/simulation/kubernetes/audit.h"

namespace siding::simulation::pods {

// Not thread-safe.
class Victims {
 public:
  Victims(Lab& lab, Cluster& cluster, const Audit& audit, const ClusterState& recorded)
      : lab_(lab), cluster_(cluster), audit_(audit), recorded_(recorded) {}

  // Of the journal. `known`: what the engine that writes has been told.
  void OnEvent(const Event& event, const Told& known);
  void OnEvicted(const Json& pod, const Caller& caller);
  // Something would be lost with this pod.
  std::function<bool(const Json& pod)> makes_progress = [](const Json&) { return true; };

 private:
  // The last order by which a job is to leave its node.
  struct Order {
    JobId request;  // 0: for none
    Time at;
    std::optional<Time> withdrawn;
  };
  void CheckBudgets(const Plan& plan, const Told& known);
  void CheckServes(const Json& pod, const Caller& caller);
  bool IsAlive(JobId request, const Told& known) const;

  Lab& lab_;
  Cluster& cluster_;
  const Audit& audit_;
  const ClusterState& recorded_;
  std::map<JobId, Order> orders_;
};

}  // namespace siding::simulation::pods
