// How long an agent waits before it dials again.
#pragma once

#include "common/backoff.h"

namespace siding {

// Only a welcome starts it afresh: a controller that accepts connections and refuses agents must not be
// dialled in a tight loop. Not thread-safe.
class DialPause {
 public:
  static constexpr Duration kFirst = std::chrono::milliseconds(50);
  explicit DialPause(unsigned seed, Duration first = kFirst, Duration longest = std::chrono::seconds(5))
      : backoff_(first, longest, seed) {}

  // `welcomed`: whether the connection that has just ended, or failed, had been accepted.
  Duration operator()(bool welcomed) {
    if (welcomed) backoff_.Reset();
    return backoff_.Next();
  }

 private:
  Backoff backoff_;
};

}  // namespace siding
