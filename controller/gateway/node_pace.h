// How fast one node's messages are read: messages beyond that wait on its side of the connection;
// other nodes do not wait.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace siding {

// A value; not thread-safe.
class NodePace {
 public:
  using Clock = std::chrono::steady_clock;
  // What messages cost. A second's worth can be had each second, and kBurst's after a time of quiet.
  static constexpr std::chrono::milliseconds kMessage{5};
  static constexpr std::chrono::milliseconds kHello{100};
  static constexpr size_t kBytesASecond = 8 * 1024 * 1024;
  static constexpr std::chrono::seconds kBurst{10};

  void Take(Clock::duration cost, size_t bytes, Clock::time_point now) {
    const std::chrono::microseconds for_bytes(bytes * 1'000'000 / kBytesASecond);
    used_until_ = std::max(used_until_, now - kBurst) + cost + for_bytes;
  }
  // Until the next message may be read; zero: at once.
  Clock::duration Wait(Clock::time_point now) const {
    return std::max(Clock::duration(0), used_until_ - now);
  }
  // All of it can be had again: there is nothing to remember.
  bool IsFresh(Clock::time_point now) const { return used_until_ <= now - kBurst; }

 private:
  Clock::time_point used_until_;
};

}  // namespace siding
