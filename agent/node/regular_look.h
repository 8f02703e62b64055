// Looks at something regularly, on a thread of its own: a file system whose server is away blocks its
// callers, and that must not be the thread that talks to the controller.
#pragma once

#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "common/clock.h"
#include "common/mutex.h"

namespace siding {

// Thread-safe.
template <class Seen>
class RegularLook {
 public:
  // `look` is called once here, and then on the thread, so long after the last time as `pause` says of what
  // it saw. What they use, and `clock`, outlive this object.
  RegularLook(std::function<Seen()> look, std::function<Duration(const Seen&)> pause, const Clock& clock)
      : look_(std::move(look)), pause_(std::move(pause)), clock_(clock), began_(clock.Now()), seen_(look_()) {
    thread_ = std::thread([this] { Run(); });
  }
  // Waits for a look that is under way.
  ~RegularLook() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
    }
    stop_.NotifyAll();
    thread_.join();
  }
  RegularLook(const RegularLook&) = delete;
  RegularLook& operator=(const RegularLook&) = delete;

  // Never blocks. None: the newest look that came to its end began longer ago than this, and the next one
  // hangs.
  std::optional<Seen> Newest(Duration oldest) const {
    MutexLock lock(mutex_);
    return clock_.Now() - began_ > oldest ? std::nullopt : std::optional(seen_);
  }

 private:
  void Run() {
    MutexLock lock(mutex_);
    while (!stop_.WaitFor(mutex_, pause_(seen_),
                          [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; })) {
      lock.Unlock();
      const Time began = clock_.Now();
      Seen seen = look_();
      lock.Lock();
      began_ = began;
      seen_ = std::move(seen);
    }
  }

  const std::function<Seen()> look_;
  const std::function<Duration(const Seen&)> pause_;
  const Clock& clock_;
  mutable Mutex mutex_;
  CondVar stop_;
  Time began_ ABSL_GUARDED_BY(mutex_);
  Seen seen_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace siding
