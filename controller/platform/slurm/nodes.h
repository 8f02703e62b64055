// Slurm's nodes as `sinfo` shows them. Pure: the text comes from elsewhere.
//
//     sinfo --all --Node --noheader --format=FORMAT
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "common/units.h"

namespace siding::slurm {

// What --format= is to be. The reason comes last: an operator writes it.
inline constexpr char kNodesFormat[] = "%N|%T|%C|%m|%G|%P|%E";

struct QueueNode {
  NodeId id;
  std::string state;     // Slurm's word for it, without the marks behind it
  bool up = false;       // runs jobs; not so while it is down or does not answer
  bool drained = false;  // takes no new ones
  int cpus = 0;
  int cpus_used = 0;
  Bytes memory;
  int gpus = 0;
  std::vector<std::string> partitions;
  std::string reason;  // why it is down or drained
};

// One node each, though sinfo has a line for each of a node's partitions; sorted by name. kInvalidArgument
// names the line and what was expected of it.
absl::StatusOr<std::vector<QueueNode>> ParseNodes(const std::string& text);

}  // namespace siding::slurm
