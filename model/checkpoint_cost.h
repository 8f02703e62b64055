// What it costs to checkpoint a job that runs on, learned from its last checkpoints. Plain values.
#pragma once

#include <optional>
#include <vector>

#include "common/units.h"
#include "model/job.h"

namespace siding {

struct CheckpointCost {
  Tier tier = Tier::kShared;
  Duration stop{0};       // the job stands still
  Duration takes{0};      // from the order until it counts, the stop included
  Bytes written;          // by all ranks: what no earlier image has
  int learned_since = 0;  // of one that is kept as the longest: so many others
  bool operator==(const CheckpointCost&) const = default;
};

// The newest last; of each tier the last ten are kept, and of the hundred before them the one that took
// longest: what writes much of earlier images again comes less often (compaction.h).
void Learn(std::vector<CheckpointCost>& costs, const CheckpointCost& cost);

// Of the next one.
struct ExpectedCost {
  Duration stop{0};     // the mean of the last ten
  Bytes written;        // the same
  Duration takes{0};    // their median: most are small
  Duration longest{0};  // of all that are kept
  bool operator==(const ExpectedCost&) const = default;
};
// None: there was none in this tier.
std::optional<ExpectedCost> Expected(const std::vector<CheckpointCost>& costs, Tier tier);

}  // namespace siding
