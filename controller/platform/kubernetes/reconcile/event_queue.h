// Events that are still to be said on pods. They only tell people, so nothing waits for them: there are so
// many at most, each once, and a namespace in which they are refused is asked again after pauses that grow.
// One that is refused comes after the others, and is given up when it has been refused several times.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/limited_log.h"
#include "common/mutex.h"
#include "controller/platform/kubernetes/reconcile/events.h"
#include "controller/platform/kubernetes/reconcile/pauses.h"

namespace siding::kubernetes {

// Thread-safe.
class EventQueue {
 public:
  static constexpr size_t kMost = 1000;

  // Beyond kMost the oldest ones are given up: they help nobody any more.
  void Add(PodEvent event) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes one out that may be said now; nothing: there is none.
  std::optional<PodEvent> Take(Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // What came of it. One that may be said later is here again.
  void Done(PodEvent event, const absl::Status& said, Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // That were given up.
  int64_t lost() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  LimitedLog log_;
  mutable Mutex mutex_;
  std::deque<PodEvent> events_ ABSL_GUARDED_BY(mutex_);
  Pauses pauses_ ABSL_GUARDED_BY(mutex_);  // by namespace; "": of all
  int64_t lost_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace siding::kubernetes
