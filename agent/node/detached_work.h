// Work that may never return.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

namespace siding {

// For reads of what a job controls: the kernel may block a reader of a process's memory, or of a file on a
// file system of the job's, for as long as the job likes. Such a read is done on a thread of its own, which
// is left behind if it does not return; there is never more than one.
//
// Thread-safe.
class DetachedWork {
 public:
  using Steady = std::chrono::steady_clock;

  DetachedWork();
  // Waits a moment for work that is under way, and leaves it behind if it does not end.
  ~DetachedWork();
  DetachedWork(const DetachedWork&) = delete;
  DetachedWork& operator=(const DetachedWork&) = delete;

  // Begins `work` on another thread; false: an earlier one is still under way, or there is no thread. It may
  // outlive this object and everything else, so it owns all that it uses.
  bool Begin(std::function<void()> work);
  // Returns when nothing is under way, or at `until`; whether nothing is.
  bool Wait(Steady::time_point until) const;
  // Since when what is under way has been; nothing: nothing is.
  std::optional<Steady::time_point> since() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace siding
