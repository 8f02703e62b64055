// How often a job should save its work.
#pragma once

#include <cstdint>
#include <optional>

#include "common/units.h"
#include "model/checkpoint_cost.h"

namespace siding {

// The interval of computing between two checkpoints that loses least, if one takes `cost` and failures come
// at random, on average every `mean_time_to_failure`. J. T. Daly, "A higher order estimate of the optimum
// checkpoint interval for restart dumps", Future Generation Computer Systems 22 (2006), equation 37; for
// small costs it is Young's sqrt(2 * cost * mtti) (1974). Both must be positive; failures so frequent that
// nothing helps give the mean time itself.
Duration CheckpointInterval(Duration cost, Duration mean_time_to_failure);

// What decides how often a job is checkpointed whose interval siding chooses.
struct IntervalTerms {
  ExpectedCost cost;
  std::optional<Duration> mean_time_to_failure;  // of any of its nodes; none: that is no reason to save it
  Duration most_lost{0};        // nothing that ends it is to lose more of its work; 0: that is not asked for
  double most_stopped = 0;      // for that it may stand still, as a share of its time; 0: as long as it takes
  double bytes_per_second = 0;  // the same: that may be written; 0: as many as there are
};

struct ChosenInterval {
  // kFailures: the last ones have failed. ChooseInterval() does not know of it.
  enum class Bound : uint8_t { kNone, kTime, kStop, kBandwidth, kFailures };
  Duration interval{0};        // from the end of one checkpoint to the order for the next; 0: there are none
  Bound bound = Bound::kNone;  // why it is no shorter, although that was asked for
  bool operator==(const ChosenInterval&) const = default;
};

// The one that loses least by failures, in which only the stop costs the job anything (N. H. Vaidya, "Impact
// of checkpoint latency on overhead ratio of a checkpointing scheme", IEEE Transactions on Computers 46
// (1997)); or less, so that no more than `most_lost` is lost: what is done from one image until the next one
// counts. No less than a second, or than a checkpoint takes.
ChosenInterval ChooseInterval(const IntervalTerms& terms);

// What a promise may say: that interval, and each that follows while images cost no more than the mean of the
// last ones.
Duration LongestInterval(IntervalTerms terms);

}  // namespace siding
