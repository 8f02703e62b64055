// What came of a simulated world.
#pragma once

#include <cstdint>
#include <string>

#include "common/units.h"

namespace siding::simulation {

struct Outcome {
  std::string violation;  // empty: all was well
  uint64_t hash = 0;      // of everything that happened
  Duration simulated{0};
};

}  // namespace siding::simulation
