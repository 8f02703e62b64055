#include "controller/engine/state/image_copies.h"

#include <algorithm>
#include <vector>

namespace siding {
namespace {

// In proportion: of what is linked an agent says nothing.
Bytes PartThatIsThere(const v1::ImageCopy& copy, Bytes image) {
  if (copy.bytes_total() <= 0) return Bytes{0};
  const double part = static_cast<double>(copy.bytes_done()) / static_cast<double>(copy.bytes_total());
  return Bytes{static_cast<int64_t>(static_cast<double>(image.value) * std::min(1.0, part))};
}

// What it is copying, since its agent has dialled.
bool HasSaid(const ClusterState& state, const NodeId& node) {
  const auto observed = state.observed_nodes.find(node);
  return observed != state.observed_nodes.end() && observed->second.connected &&
         observed->second.heartbeat.ram_available() > 0;
}

}  // namespace

bool IsAnyCopyUnderWay(const ClusterState& state) {
  return std::any_of(state.observed_nodes.begin(), state.observed_nodes.end(),
                     [](const auto& node) { return node.second.heartbeat.copies_size() > 0; });
}

std::map<int, Bytes> CopiesUnderWay(const ClusterState& state, const CheckpointRecord& checkpoint) {
  std::map<int, Bytes> copies;
  for (int rank = 0; rank < static_cast<int>(checkpoint.nodes.size()); ++rank) {
    const auto observed = state.observed_nodes.find(checkpoint.nodes[rank]);
    if (observed == state.observed_nodes.end()) continue;
    for (const v1::ImageCopy& copy : observed->second.heartbeat.copies()) {
      if (copy.rank() == checkpoint.first_rank + rank && copy.checkpoint() == checkpoint.id.value())
        copies[rank] = PartThatIsThere(copy, checkpoint.PartOfRank());
    }
  }
  return copies;
}

Bytes CopiedSoFar(const ClusterState& state, const CheckpointRecord& checkpoint) {
  const auto copied = state.copied_ranks.find(checkpoint.id);
  const int64_t ranks = copied == state.copied_ranks.end() ? 0 : std::ssize(copied->second);
  Bytes sum{checkpoint.PartOfRank().value * ranks};
  for (const auto& [rank, bytes] : CopiesUnderWay(state, checkpoint)) sum += bytes;
  return sum;
}

bool OutlivesNodes(const ClusterState& state, const JobRecord& job, const CheckpointRecord& image) {
  if (image.tier == Tier::kShared) {
    const std::vector<CheckpointId> usable = UsableImages(state, job);
    const auto newest = std::find_if(usable.rbegin(), usable.rend(), [&](const CheckpointId& id) {
      return state.checkpoints.at(id).tier == Tier::kShared;
    });
    return newest != usable.rend() && *newest == image.id;
  }
  // What nodes that are away, or have only just dialled, are copying is not known.
  for (int rank = 0; rank < static_cast<int>(image.nodes.size()); ++rank) {
    if (!image.exited.contains(rank) && !HasSaid(state, image.nodes[rank])) return true;
  }
  return !CopiesUnderWay(state, image).empty();
}

bool ReadsCopy(const ClusterState& state, const CheckpointRecord& checkpoint, const NodeId& node, int rank) {
  return checkpoint.HasCopyOn(node, rank) && !state.doubted_copies.contains(checkpoint.id);
}

}  // namespace siding
