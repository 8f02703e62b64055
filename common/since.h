// How long something has taken.
#pragma once

#include <chrono>

#include "common/units.h"

namespace siding {

// By the monotonic clock.
inline Duration Since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - start);
}

}  // namespace siding
