// How far somebody has been told of events.
#pragma once

#include <cstdint>
#include <string>

namespace siding {

// Of this controller's time.
struct ToldCounts {
  std::string name;
  int64_t told = 0;
  int64_t failures = 0;
  int64_t at = 0;  // the number of the last event that it has, or was not to be told
};

}  // namespace siding
