// Agents' messages on their way into the engine.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/mutex.h"
#include "siding/v1/agent.pb.h"

namespace siding {

// Of the threads that bring messages one waits for the engine's lock and takes those of all of them, and the
// others go on reading. So what comes while the engine works or the disk is busy is looked at together, and
// recorded with one write to the disk: of a thousand ranks that come to a barrier, a few looks, and not a
// thousand. (Who waits works for the others: "flat combining", Hendler, Incze, Shavit and Tzafrir, 2010.)
//
// Thread-safe.
class Inbox {
 public:
  struct Item {
    NodeId node;
    v1::FromAgent message;
  };
  // Beyond that every thread waits, and with it the connection that it reads.
  static constexpr size_t kMostBytes = 16 << 20;

  // True: the caller is to get the engine's lock, and then to Take(). False: another one is on its way there.
  bool Add(const NodeId& node, const v1::FromAgent& message) {
    MutexLock lock(mutex_);
    items_.push_back({node, message});
    bytes_ += message.ByteSizeLong();
    return !std::exchange(somebody_comes_, true) || bytes_ > kMostBytes;
  }
  // With the engine's lock. In the order in which they came.
  std::vector<Item> Take() {
    MutexLock lock(mutex_);
    somebody_comes_ = false;
    bytes_ = 0;
    return std::exchange(items_, {});
  }
  size_t size() const {
    MutexLock lock(mutex_);
    return items_.size();
  }

 private:
  mutable Mutex mutex_;
  std::vector<Item> items_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool somebody_comes_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace siding
