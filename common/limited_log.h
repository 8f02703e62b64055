// Warnings that a caller can cause without limit: a few a minute of each, and then how many were
// left out.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/mutex.h"

namespace siding {

// Thread-safe.
class LimitedLog {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::minutes kPeriod{1};
  static constexpr int kMost = 20;            // lines of one in a period
  static constexpr size_t kMostNames = 1000;  // who are counted apart; beyond that all together

  // `whose`: who causes it, for people, such as "user bob"; the count is told with it.
  void Warn(const std::string& whose, const std::string& line);
  // What Warn() writes; nothing: the line is counted.
  std::vector<std::string> Take(const std::string& whose, const std::string& line, Clock::time_point now);

 private:
  struct Written {
    Clock::time_point since;
    int64_t lines = 0;
  };
  Mutex mutex_;
  std::map<std::string, Written> by_name_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace siding
