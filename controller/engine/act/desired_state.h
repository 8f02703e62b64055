// The desired state of the cluster manager, derived from the recorded state alone: nodes that are kept for a
// deadline job, nodes where victims with local images are to start, and jobs that are to be suspended.
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
