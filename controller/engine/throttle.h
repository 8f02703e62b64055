// Limits the share of time of something that is done after every message: as long as it is quick it is always
// allowed, but in a large cluster it would leave no time for anything else. The caller does it at a later
// call instead; the throttle wakes no thread.
#pragma once

#include "common/units.h"

namespace siding {

// A value; not thread-safe.
class Throttle {
 public:
  // Once it has taken longer than this, it may take no more than a quarter of the time.
  static constexpr Duration kQuick = std::chrono::milliseconds(1);
  static constexpr int kRest = 3;  // times as long as it took

  bool Allows(Time now) const {
    const bool clock_was_set_back = now < ended_;
    return took_ <= kQuick || now - ended_ >= kRest * took_ || clock_was_set_back;
  }
  void Finished(Time began, Time ended) {
    took_ = ended - began;
    ended_ = ended;
  }

 private:
  Time ended_;
  Duration took_{0};
};

}  // namespace siding
