// The desired state of the cluster manager, derived from the recorded state: nodes that are kept for a
// deadline job, nodes where victims with local images are to start, jobs that are to be suspended, and how
// jobs go on by what is made in their place. And what users of its queue are told.
//
// Used under the engine's lock.
#pragma once

#include "controller/engine/state/context.h"

namespace siding {

class DesiredStateBuilder {
 public:
  explicit DesiredStateBuilder(const Context& c)
      : state_(c.state), clock_(c.clock), platform_(c.platform), cluster_(c.cluster) {}

  // All that is desired at this moment.
  DesiredState Build() const;

 private:
  void AddRequest(const JobRecord& request, DesiredState& desired) const;
  void AddRefusals(DesiredState& desired) const;
  DesiredState::Next NextOf(const JobRecord& job) const;

  const ClusterState& state_;
  const Clock& clock_;
  const Platform& platform_;
  const ClusterView& cluster_;
};

}  // namespace siding
