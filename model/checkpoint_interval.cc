#include "model/checkpoint_interval.h"

#include <algorithm>
#include <cmath>

namespace siding {

Duration CheckpointInterval(Duration cost, Duration mean_time_to_failure) {
  const double d = ToSeconds(cost), m = ToSeconds(mean_time_to_failure);
  if (d >= 2 * m) return mean_time_to_failure;
  const double ratio = d / (2 * m);
  return FromSeconds(std::sqrt(2 * d * m) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - d);
}

ChosenInterval ChooseInterval(const IntervalTerms& terms) {
  using Bound = ChosenInterval::Bound;
  const ExpectedCost& cost = terms.cost;
  // From the order for one to the order for the next.
  const auto with_period = [&](double seconds) { return FromSeconds(seconds) - cost.takes; };
  ChosenInterval chosen{Duration::max()};
  if (terms.most_lost > Duration(0)) {
    // While one image is being written, and until the next one counts.
    chosen = {terms.most_lost - 2 * cost.longest};
    // More often than that would be in vain: what is lost is what two slow ones take.
    if (chosen.interval < terms.most_lost / 4) chosen = {terms.most_lost / 4, Bound::kTime};
    const auto at_least = [&](double seconds, Bound bound) {
      if (with_period(seconds) > chosen.interval) chosen = {with_period(seconds), bound};
    };
    if (terms.most_stopped > 0) at_least(ToSeconds(cost.stop_due) / terms.most_stopped, Bound::kStop);
    if (terms.bytes_per_second > 0)
      at_least(static_cast<double>(cost.written_due.value) / terms.bytes_per_second, Bound::kBandwidth);
  }
  if (terms.mean_time_to_failure) {
    // The job runs on while the image is written.
    const auto stop = std::max<Duration>(std::chrono::microseconds(1), cost.stop);
    const Duration best = CheckpointInterval(stop, *terms.mean_time_to_failure) - (cost.takes - cost.stop);
    if (best < chosen.interval) chosen = {best};
  }
  if (chosen.interval == Duration::max()) return {};
  const auto least = std::max<Duration>(std::chrono::seconds(1), cost.takes);
  if (chosen.interval < least) chosen = {least, Bound::kTime};
  return chosen;
}

Duration LongestInterval(IntervalTerms terms) {
  ExpectedCost& cost = terms.cost;
  cost.stop_due = std::max(cost.stop_due, cost.stop);
  cost.written_due = std::max(cost.written_due, cost.written);
  return ChooseInterval(terms).interval;
}

}  // namespace siding
