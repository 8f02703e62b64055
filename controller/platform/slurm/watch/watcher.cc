#include "controller/platform/slurm/watch/watcher.h"

#include <algorithm>
#include <chrono>

namespace siding::slurm {

Duration PauseAfter(Duration poll, Duration interval) { return std::max({kLeastPause, interval, poll * 19}); }

Watcher::Watcher(Client& client, PollListener& listener, Duration interval)
    : poller_(client), listener_(listener), interval_(interval), thread_([this] { Run(); }) {}

Watcher::~Watcher() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  thread_.join();
}

void Watcher::Wake() {
  {
    MutexLock lock(mutex_);
    woken_ = true;
  }
  wake_.NotifyAll();
}

void Watcher::PollOnce() {
  const absl::StatusOr<Changes> changes = poller_.Poll();
  if (changes.status().code() != health_.code()) {
    health_ = changes.status();
    listener_.OnHealth(health_);
  }
  if (!changes.ok()) return;
  if (!changes->empty()) listener_.OnChanges(*changes);
  {
    MutexLock lock(mutex_);
    woken_ = false;  // whoever woke it before this is served by this poll
  }
  listener_.OnPolled(poller_.jobs(), !changes->empty());
}

void Watcher::Run() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    lock.Unlock();
    const auto begun = std::chrono::steady_clock::now();
    PollOnce();
    const auto took = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begun);
    // One that failed has waited for an answer for long enough; what it took says nothing of slurmctld's
    // load.
    const Duration pause = PauseAfter(health_.ok() ? took : Duration(0), interval_);
    lock.Lock();
    wake_.WaitFor(mutex_, pause, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopping_ || (woken_ && health_.ok());
    });
  }
}

}  // namespace siding::slurm
