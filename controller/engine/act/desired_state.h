// What siding wants of the cluster manager, from the recorded state alone: the nodes of a plan for the job
// with the deadline, victims where their images are, and whose slots are free.
//
// Used under the engine's lock.
#pragma once

#include "controller/engine/state/context.h"

namespace siding {

class DesiredStateBuilder {
 public:
  explicit DesiredStateBuilder(const Context& c) : state_(c.state), clock_(c.clock), cluster_(c.cluster) {}

  // All that is desired at this moment.
  DesiredState Build() const;

 private:
  void AddRequest(const JobRecord& request, DesiredState& desired) const;

  const ClusterState& state_;
  const Clock& clock_;
  const ClusterView& cluster_;
};

}  // namespace siding
