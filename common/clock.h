// Time as something passed in. Logic never reads the system's clock; tests advance a fake one.
#pragma once

#include "common/mutex.h"
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

// The time of day when it was made, and from then on so much later as has passed since, the machine's sleep
// included: it never jumps, whatever becomes of the machine's clock. Thread-safe.
class SteadyClock final : public Clock {
 public:
  // `day` must outlive it.
  explicit SteadyClock(const Clock& day = SystemClock());
  Time Now() const override;
  // How far the time of day is ahead of it by now; negative: behind.
  Duration Off() const { return day_.Now() - Now(); }

 private:
  const Clock& day_;
  const Duration before_;  // between the machine's start and that of the time of day
};

class FakeClock final : public Clock {
 public:
  explicit FakeClock(Time start = FromMicros(0)) : now_(start) {}
  Time Now() const override {
    MutexLock lock(mutex_);
    return now_;
  }
  void Advance(Duration d) {  // negative: it is set back
    MutexLock lock(mutex_);
    now_ += d;
  }

 private:
  mutable Mutex mutex_;
  Time now_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace siding
