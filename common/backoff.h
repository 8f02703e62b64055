// Pauses between attempts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include "common/units.h"

namespace siding {

// Each pause is drawn from half to all of a time that doubles from `first` to `longest`, so that a thousand
// clients do not come back in the same moment. The same for the same seed. Not thread-safe.
class Backoff {
 public:
  Backoff(Duration first, Duration longest, uint64_t seed)
      : random_(seed), first_(first), longest_(longest), next_(first) {}

  Duration Next() {
    const Duration most = next_;
    next_ = std::min(2 * most, longest_);
    const Duration half = most / 2;
    return half + Duration(random_() % std::max<int64_t>(1, half.count()));
  }
  // The next one is the first again.
  void Reset() { next_ = first_; }

 private:
  std::minstd_rand random_;
  Duration first_, longest_;
  Duration next_;
};

}  // namespace siding
