// How often a job should save its work.
#pragma once

#include "common/units.h"

namespace siding {

// The interval of computing between two checkpoints that loses least, if one takes `cost` and failures come
// at random, on average every `mean_time_to_failure`. J. T. Daly, "A higher order estimate of the optimum
// checkpoint interval for restart dumps", Future Generation Computer Systems 22 (2006), equation 37; for
// small costs it is Young's sqrt(2 * cost * mtti) (1974). Both must be positive; failures so frequent that
// nothing helps give the mean time itself.
Duration CheckpointInterval(Duration cost, Duration mean_time_to_failure);

}  // namespace siding
