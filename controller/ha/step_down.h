// When the active controller releases the journal although it could continue: agents reach a controller that
// stands by, and none reaches this one.
#pragma once

#include <chrono>
#include <string>

#include "controller/config.h"
#include "controller/engine/engine.h"
#include "controller/ha/partition_detector.h"

namespace siding {

// Not thread-safe. `config` and `engine` must outlive it.
class StepDown {
 public:
  StepDown(const ControllerConfig& config, const Engine& engine);
  // To be called often. Why the journal is to be released now; empty: it is not.
  std::string Check();

 private:
  const ControllerConfig& config_;
  const Engine& engine_;
  const bool possible_;
  PartitionDetector detector_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace siding
