// What a write to the disk takes while the load is on: no answer that needs one comes sooner.
#pragma once

#include <string>
#include <thread>

#include "bench/load_bench/latencies.h"

namespace siding {

// Ten times a second a page is appended to a file of its own in `folder` and synced, as a commit of the
// journal is.
class DiskProbe {
 public:
  // Adds to `latencies` as `what`, until it is destroyed. Both must outlive it.
  DiskProbe(const std::string& folder, std::string what, Latencies& latencies);

 private:
  std::jthread thread_;
};

}  // namespace siding
