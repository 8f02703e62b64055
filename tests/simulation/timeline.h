// What is to happen, in order of time; what is due at the same moment happens in the order in which it was
// asked for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "common/clock.h"

namespace siding::simulation {

// Not thread-safe. The clock moves only in Step().
class Timeline {
 public:
  explicit Timeline(FakeClock& clock) : clock_(&clock) {}

  Time Now() const { return clock_->Now(); }
  const Clock& clock() const { return *clock_; }
  void After(Duration delay, std::function<void()> what) { At(Now() + delay, std::move(what)); }
  void At(Time when, std::function<void()> what) {
    queue_.push({std::max(when, Now()), ++asked_, std::move(what)});
  }
  // Lets the next thing happen.
  void Step() {
    // Moved out of a const reference: the queue has no other way to give up its first.
    Due due = std::move(const_cast<Due&>(queue_.top()));
    queue_.pop();
    clock_->Advance(due.when - Now());
    due.what();
  }
  // Lets everything happen that is due by then, and is there at that time; before, if `enough` says so. For
  // what waits in the midst of something: others go on meanwhile, and may wait in the midst of something,
  // too.
  template <class Enough>
  void RunUntil(Time when, const Enough& enough) {
    while (!queue_.empty() && queue_.top().when <= when) {
      if (enough()) return;
      Step();
    }
    if (!enough() && Now() < when) clock_->Advance(when - Now());
  }
  bool empty() const { return queue_.empty(); }

 private:
  struct Due {
    Time when;
    uint64_t number = 0;
    std::function<void()> what;
    bool operator<(const Due& other) const {
      return std::tie(other.when, other.number) < std::tie(when, number);
    }
  };

  FakeClock* clock_;
  uint64_t asked_ = 0;
  std::priority_queue<Due> queue_;
};

}  // namespace siding::simulation
