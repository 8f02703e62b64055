#include "model/checkpoint_interval.h"

#include <cmath>

namespace siding {

Duration CheckpointInterval(Duration cost, Duration mean_time_to_failure) {
  const double d = ToSeconds(cost), m = ToSeconds(mean_time_to_failure);
  if (d >= 2 * m) return mean_time_to_failure;
  const double ratio = d / (2 * m);
  return FromSeconds(std::sqrt(2 * d * m) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - d);
}

}  // namespace siding
