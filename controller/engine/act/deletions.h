// Images that are deleted or damaged are taken out of the store, and those on nodes' own disks of which there
// are others in shared storage, when they are not needed any more.
//
// Used under the engine's lock.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "controller/engine/act/orders.h"
#include "controller/engine/state/context.h"

namespace siding {

class Deletions {
 public:
  struct Image {
    CheckpointId checkpoint;
    int rank = 0;
    Tier tier = Tier::kShared;
    auto operator<=>(const Image&) const = default;  // NOLINT(modernize-use-nullptr): there is none
  };
  struct Deletion {
    int64_t op = 0;  // the same each time it is sent
    Time again_at;   // unless it has been carried out by then
    int failures = 0;
  };
  struct AskedToDelete {
    Image image;
    NodeId node;
  };

  Deletions(const Context& c, Orders& orders)
      : state_(c.state),
        clock_(c.clock),
        cluster_(c.cluster),
        manager_(c.manager),
        recorder_(c.recorder),
        orders_(orders) {}

  // Asks for all of them again, at the next look.
  void AskAgain();
  // Events that were not durable have been taken back.
  void TakeBack();
  // Null: no deletion has this number.
  const NodeId* AskedOf(int64_t op) const;

  // Asks nodes to delete images that the recorded state does not want.
  void OrderDeletions();
  // An answer from the node that was asked.
  void OnDeleted(const NodeId& node, const v1::OpResult& result);

 private:
  // False: some of what is not wanted is there still, as far as is known.
  bool Finish(const CheckpointRecord& checkpoint);
  bool IsAllUnwanted(const CheckpointRecord& checkpoint) const;
  std::vector<Image> ToDelete(const CheckpointRecord& checkpoint) const;
  bool HasSharedTier() const;
  void Order(const CheckpointRecord& checkpoint, const Image& image);

  const ClusterState& state_;
  const Clock& clock_;
  const ClusterView& cluster_;
  const ManagerView& manager_;
  Recorder& recorder_;
  Orders& orders_;
  std::map<Image, Deletion> open_;
  std::map<int64_t, AskedToDelete> by_op_;  // those that have not been answered
  std::set<Image> deleted_;                 // of those that are not wholly deleted
};

}  // namespace siding
