// What has happened, for those who watch: the newest events in memory, older ones from the journal.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "controller/engine/state/cluster_state.h"
#include "controller/journal/journal.h"

namespace siding {

// Thread-safe, with a lock of its own: watchers hold up no decision, however many there are.
class EventLog {
 public:
  static constexpr size_t kRecent = 20000;

  // `journal` must outlive it. `keep`: so many events in memory.
  explicit EventLog(const Journal& journal, size_t keep = kRecent) : journal_(journal), keep_(keep) {}

  // Events that are durable and follow on those before. What it has already is left out.
  void Append(std::vector<Event> events);
  // Events after `seq`, at most `limit`; waits up to `wait` for the first one. An error: those that are in
  // memory no more cannot be read.
  absl::StatusOr<std::vector<Event>> Read(int64_t seq, size_t limit, Duration wait) const;
  // The same; what cannot be read is left out.
  std::vector<Event> After(int64_t seq, size_t limit, Duration wait) const;
  // Shows the events after `seq`, the oldest first, until `visit` says false. Nothing is copied, and the log
  // is locked meanwhile. False: some are in memory no more, and none is shown.
  bool VisitAfter(int64_t seq, absl::FunctionRef<bool(const Event&)> visit) const;

 private:
  std::vector<Event> Recent(int64_t seq, size_t limit) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t newest() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return recent_.empty() ? 0 : recent_.back().seq;
  }

  const Journal& journal_;
  const size_t keep_;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::deque<Event> recent_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace siding
