#include "common/clock.h"

#include <time.h>

namespace siding {
namespace {

class RealClock final : public Clock {
 public:
  Time Now() const override {
    return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
  }
};

Duration SinceTheMachineStarted() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::duration_cast<Duration>(std::chrono::seconds(now.tv_sec) +
                                              std::chrono::nanoseconds(now.tv_nsec));
}

}  // namespace

SteadyClock::SteadyClock(const Clock& day)
    : day_(day), before_(day.Now().time_since_epoch() - SinceTheMachineStarted()) {}

Time SteadyClock::Now() const { return Time(before_ + SinceTheMachineStarted()); }

const Clock& SystemClock() {
  static const RealClock clock;
  return clock;
}

}  // namespace siding
