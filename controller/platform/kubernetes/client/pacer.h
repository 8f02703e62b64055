// Time as something that passes: what waits does so here, so that tests need not.
#pragma once

#include <cstdint>
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

// Pauses between attempts: each about twice as long as the one before, none longer than `most`, between a
// half and the whole of it by chance, so that clients do not come together. The same for the same seed. Not
// thread-safe.
class Backoff {
 public:
  Backoff(Duration first, Duration most, uint64_t seed) : first_(first), most_(most), random_(seed | 1) {}
  Duration Next();
  void Reset() { next_ = Duration(0); }

 private:
  const Duration first_;
  const Duration most_;
  uint64_t random_;
  Duration next_{0};
};

}  // namespace siding::kubernetes
