// Nodes that are gone for good. Only an operator can know that: to the controller such a node looks like one
// that is cut off, whose tasks still run. Once declared lost, its tasks count as gone (ClusterView::Seen),
// their jobs continue elsewhere, and images that are only on its disk do not count any more.
//
// If the operator was wrong, and the node comes back, its agent reports what it still has. These tasks are of
// an earlier incarnation or placement, so they change no job, hold what they use (NodeAccounts) and are
// ended (Strays). A job that is to be started waits for that, as for any node of `left_on`; if it has been
// started again in between, `given_up` remembers where.
//
// Used under the engine's lock.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "controller/engine/state/context.h"

namespace siding {

class NodeLoss {
 public:
  explicit NodeLoss(const Context& c)
      : state_(c.state),
        clock_(c.clock),
        platform_(c.platform),
        startup_(c.startup),
        cluster_(c.cluster),
        recorder_(c.recorder),
        agenda_(c.agenda) {}

  // An operator says that the node is gone for good. kFailedPrecondition: it is there, or may be.
  absl::Status Lose(const NodeId& node, const std::string& by);

 private:
  absl::Status MayBeLost(const NodeId& node) const;

  const ClusterState& state_;
  const Clock& clock_;
  const Platform& platform_;
  const StartUp& startup_;
  const ClusterView& cluster_;
  Recorder& recorder_;
  Agenda& agenda_;
};

}  // namespace siding
