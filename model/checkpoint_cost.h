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
  bool ran_on = false;    // behind its stop, so later images may share its pages
  int learned_since = 0;  // of one that is kept as the longest: so many others
  bool operator==(const CheckpointCost&) const = default;
};

// The newest last; of each tier the last ten are kept, and of the hundred before them the one that took
// longest: what writes much of earlier images again comes less often (compaction.h).
void Learn(std::vector<CheckpointCost>& costs, const CheckpointCost& cost);

// Of the next one. Plans and limits ask what it does to its job and its tier: they read the means. When it is
// ordered follows from what is due (ChooseInterval()). A promise of what is lost counts with the longest, and
// with the means or what is due, whichever is more (LongestInterval()).
struct ExpectedCost {
  Duration stop{0};     // the mean of the last ten
  Bytes written;        // the same
  Duration takes{0};    // their median: most are small
  Duration longest{0};  // of all that are kept
  // What the time until the next one makes up for: the mean of those that were seen, if the job stood still
  // for one of them; else that of ten. The first two since a start or restore are like no others: whole, or
  // without tracking. So while there are fewer than ten, those that are missing are taken to be like the ones
  // from the third on, and the first two are made up for once, in ten parts. Before the third they are taken
  // to cost nothing: they may share nearly all. A job whose images share nothing after all has then
  // written 1.7 images too many, and no more.
  Duration stop_due{0};
  Bytes written_due;
  bool operator==(const ExpectedCost&) const = default;
};
// None: there was none in this tier.
std::optional<ExpectedCost> Expected(const std::vector<CheckpointCost>& costs, Tier tier);

}  // namespace siding
