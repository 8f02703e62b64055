// How long an agent waits before it dials again.
#pragma once

#include <algorithm>
#include <random>

#include "common/units.h"

namespace siding {

// Each wait is drawn from half to all of a time that doubles from `first` to `longest`, so that a thousand
// agents do not come back in the same moment. Only a welcome starts it afresh: a controller that accepts
// connections and refuses agents must not be dialled in a tight loop. Not thread-safe.
class Backoff {
 public:
  static constexpr Duration kFirst = std::chrono::milliseconds(50);
  explicit Backoff(unsigned seed, Duration first = kFirst, Duration longest = std::chrono::seconds(5))
      : random_(seed), first_(first), longest_(longest), next_(first) {}

  // `welcomed`: whether the connection that has just ended, or failed, had been accepted.
  Duration operator()(bool welcomed) {
    const Duration most = welcomed ? first_ : next_;
    next_ = std::min(2 * most, longest_);
    const Duration half = most / 2;
    return half + Duration(random_() % std::max<int64_t>(1, half.count()));
  }

 private:
  std::minstd_rand random_;
  Duration first_, longest_;
  Duration next_;
};

}  // namespace siding
