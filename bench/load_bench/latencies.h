// How long calls took, by what was asked.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/mutex.h"
#include "common/units.h"

namespace siding {

// Thread-safe.
class Latencies {
 public:
  // `answered`: with what was asked for, or with a refusal that is an answer.
  void Add(const std::string& what, Duration took, bool answered);

  struct Row {
    std::string what;
    size_t count = 0, failed = 0;
    double p50 = 0, p90 = 0, p99 = 0, max = 0;  // ms
  };
  // In the order of their names; the last is of all together.
  std::vector<Row> Rows() const;

 private:
  struct Series {
    std::vector<float> ms;
    size_t failed = 0;
  };
  mutable Mutex mutex_;
  std::map<std::string, Series> by_what_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace siding
