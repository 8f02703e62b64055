// When the active controller gives the journal to one that stands by although it could go on: agents reach
// that one, and none reaches this.
#pragma once

#include <chrono>
#include <string>

#include "controller/config.h"
#include "controller/engine/engine.h"
#include "controller/unreached.h"

namespace siding {

// Not thread-safe. `config` and `engine` must outlive it.
class Handover {
 public:
  Handover(const ControllerConfig& config, const Engine& engine);
  // To be called often. Why the journal is to be given back now; empty: it is not.
  std::string Look();

 private:
  const ControllerConfig& config_;
  const Engine& engine_;
  const bool possible_;
  Unreached unreached_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace siding
