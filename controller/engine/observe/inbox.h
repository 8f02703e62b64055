// Agents' messages on their way into the engine.
#pragma once

#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/mutex.h"
#include "siding/v1/agent.pb.h"

namespace siding {

// Each thread that brings a message waits for the engine's lock, and the one that gets it takes the messages
// of all of them. What came while the disk was busy is then recorded with one write to the disk, and not with
// one write each ("flat combining": Hendler, Incze, Shavit and Tzafrir, 2010).
//
// Thread-safe.
class Inbox {
 public:
  struct Item {
    const NodeId* node;
    const v1::FromAgent* message;
  };

  // Both must live until a thread with the engine's lock has taken them.
  void Add(const NodeId& node, const v1::FromAgent& message) {
    MutexLock lock(mutex_);
    items_.push_back({&node, &message});
  }
  // In the order in which they came.
  std::vector<Item> Take() {
    MutexLock lock(mutex_);
    return std::exchange(items_, {});
  }
  size_t size() const {
    MutexLock lock(mutex_);
    return items_.size();
  }

 private:
  mutable Mutex mutex_;
  std::vector<Item> items_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace siding
