// How long each step of something took, for one line of a log: "frozen 21.3 ms, drained 0.4 ms".
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/units.h"

namespace siding {

// A step in which it waited for others that do the same at the same time.
inline constexpr char kWaitedForOthers[] = "waited";

// By the monotonic clock, from its making on. Not thread-safe.
class Laps {
 public:
  // That step has ended now, and the next one begins. `step` must outlive this. One that comes again is added
  // to.
  void End(absl::string_view step);
  // 0: it has not come.
  Duration Of(absl::string_view step) const;
  // In the order in which they came first.
  std::string ToString() const;

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::vector<std::pair<absl::string_view, Duration>> steps_;
};

}  // namespace siding
