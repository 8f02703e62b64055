// Those who follow the events, as `sidingctl events --follow` does: each with a connection of its own, from
// the first event on.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/load_bench/latencies.h"
#include "bench/load_bench/tally.h"

namespace siding {

// Not thread-safe, but for numbers. Its end ends all streams.
class Watchers {
 public:
  // The first of them tells `tally`; `latencies` hears how old each event is when it arrives.
  Watchers(std::string socket, Tally& tally, Latencies& latencies);
  ~Watchers();

  absl::Status Add(uint32_t uid);
  // One of them goes away, and another comes in its place. Never the first.
  absl::Status ReplaceOne();

  int64_t received() const { return received_; }
  int64_t lost() const { return lost_; }  // streams that the controller ended

 private:
  class Watcher;

  absl::Status Put(std::unique_ptr<Watcher>& place, uint32_t uid, Tally* tally);

  const std::string socket_;
  Tally& tally_;
  Latencies& latencies_;
  std::atomic<int64_t> received_{0}, lost_{0};
  std::vector<std::unique_ptr<Watcher>> watchers_;
  size_t next_replaced_ = 1;
};

}  // namespace siding
