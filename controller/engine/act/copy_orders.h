// Nodes are asked to copy images from their own disks into shared storage.
//
// Used under the engine's lock.
#pragma once

#include <map>
#include <vector>

#include "controller/engine/act/orders.h"
#include "controller/engine/state/context.h"
#include "controller/engine/state/wanted_copy.h"

namespace siding {

class CopyOrders {
 public:
  struct AskedToCopy {
    CheckpointId checkpoint;
    int rank = 0;
    NodeId node;
  };

  CopyOrders(const Context& c, Orders& orders)
      : state_(c.state), clock_(c.clock), cluster_(c.cluster), limited_log_(c.limited_log), orders_(orders) {}

  // For each rank that is missing on its node, to find out whether it is in shared storage already. And for
  // each that is wanted and not known to be there, unless its node was asked a moment ago, or has failed; of
  // so many checkpoints at once as a quarter of the nodes, sixteen at least, the first ones first. Those
  // under way wait while they `pause`, and no others are begun.
  void OrderCopies(const std::vector<WantedCopy>& wanted, bool pause);
  // Null: no copy has this number. Valid until it is answered.
  const AskedToCopy* AskedOf(int64_t op) const;
  // An answer from the node that was asked.
  void OnCopied(const v1::OpResult& result);
  // What nodes were asked counts as not asked.
  void AskAgain();
  // The same of one node, whose agent may be another one now.
  void AskAgain(const NodeId& node);

 private:
  struct Copy {
    int64_t op = 0;
    Time again_at;
    int failures = 0;  // in a row
    int unheard = 0;   // so often ordered while its node did not say that it is under way
    bool pauses = false;
  };
  using Image = std::pair<CheckpointId, int>;  // and rank

  // Whether its nodes are busy with it. What has failed and waits to be tried again keeps no other from its
  // turn.
  bool IsUnderWay(const CheckpointId& checkpoint) const;
  struct How {
    CheckpointId base;
    bool is_begun = false;  // its node says so
    bool pause = false;
  };
  void OrderRank(const CheckpointRecord& checkpoint, int rank, const How& how);

  const ClusterState& state_;
  const Clock& clock_;
  const ClusterView& cluster_;
  LimitedLog& limited_log_;
  Orders& orders_;
  std::map<Image, Copy> open_;
  std::map<int64_t, AskedToCopy> by_op_;  // those that have not been answered
};

}  // namespace siding
