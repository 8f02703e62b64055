// Time as something that passes: what waits does so here, so that tests need not.
#pragma once

#include <stop_token>

#include "common/clock.h"
#include "common/units.h"

namespace siding::kubernetes {

// Thread-safe.
class Pacer {
 public:
  virtual ~Pacer() = default;
  virtual Time Now() const = 0;
  // False: a stop was requested, and it returned at once.
  virtual bool Pause(Duration pause, std::stop_token stop) = 0;
};

// On a clock that never jumps. Lives for the whole process.
Pacer& RealPacer();

// A pause is over at once, and takes that long by this clock.
class FakePacer final : public Pacer {
 public:
  explicit FakePacer(FakeClock& clock) : clock_(clock) {}  // must outlive it
  Time Now() const override { return clock_.Now(); }
  bool Pause(Duration pause, std::stop_token stop) override {
    if (stop.stop_requested()) return false;
    clock_.Advance(pause);
    return true;
  }

 private:
  FakeClock& clock_;
};

}  // namespace siding::kubernetes
