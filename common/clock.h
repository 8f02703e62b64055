// Time as something passed in. Logic never reads the system's clock; tests advance a fake one.
#pragma once

#include <mutex>

#include "common/units.h"

namespace siding {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time Now() const = 0;
};

// The machine's real-time clock. Lives for the whole process.
const Clock& SystemClock();

class FakeClock final : public Clock {
 public:
  explicit FakeClock(Time start = FromMicros(0)) : now_(start) {}
  Time Now() const override {
    std::lock_guard lock(mutex_);
    return now_;
  }
  void Advance(Duration d) {
    std::lock_guard lock(mutex_);
    now_ += d;
  }

 private:
  mutable std::mutex mutex_;
  Time now_;  // guarded by mutex_
};

}  // namespace siding
