// What it costs to checkpoint a job that runs on, learned from its last checkpoints. Plain values.
#pragma once

#include <optional>
#include <vector>

#include "common/units.h"
#include "model/job.h"

namespace siding {

struct CheckpointCost {
  Tier tier = Tier::kShared;
  Duration stop{0};   // the job stands still
  Duration takes{0};  // from the order until it counts, the stop included
  Bytes written;      // by all ranks: what no earlier image has
  bool operator==(const CheckpointCost&) const = default;
};

// The newest last; of each tier no more than the last ten are kept.
void Learn(std::vector<CheckpointCost>& costs, const CheckpointCost& cost);

// Of the next one.
struct ExpectedCost {
  Duration stop{0};     // the mean
  Bytes written;        // the mean
  Duration takes{0};    // the median: most are small
  Duration longest{0};  // of the times: that of a whole one, as some of a row are
  bool operator==(const ExpectedCost&) const = default;
};
// None: there was none in this tier.
std::optional<ExpectedCost> Expected(const std::vector<CheckpointCost>& costs, Tier tier);

}  // namespace siding
