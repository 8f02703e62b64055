// Questions about images on nodes' own disks that are, or have been, copied into shared storage. By what is
// recorded and what nodes have said last.
#pragma once

#include <map>

#include "controller/engine/state/cluster_state.h"

namespace siding {

// Of any checkpoint.
bool IsAnyCopyUnderWay(const ClusterState& state);

// Of a checkpoint on nodes' own disks: the ranks that are being copied, and how much of each image is there.
std::map<int, Bytes> CopiesUnderWay(const ClusterState& state, const CheckpointRecord& checkpoint);
// So much of it is in shared storage, also of ranks that are done.
Bytes CopiedSoFar(const ClusterState& state, const CheckpointRecord& checkpoint);
// What is to be kept of the job's good images however many newer ones there are on nodes' own disks: the
// newest in shared storage, and one that is, or may be, on its way there.
bool OutlivesNodes(const ClusterState& state, const JobRecord& job, const CheckpointRecord& image);
// A restore on that node reads the image on its disk, and not the one in shared storage.
bool ReadsCopy(const ClusterState& state, const CheckpointRecord& checkpoint, const NodeId& node, int rank);

}  // namespace siding
