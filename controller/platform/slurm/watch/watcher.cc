#include "controller/platform/slurm/watch/watcher.h"

#include <algorithm>
#include <utility>

namespace siding::slurm {

Duration Pace::After(Duration poll) {
  const Duration costs = std::min(std::exchange(last_, poll), poll);
  return std::max(least_, std::min(costs * 19, kMostPause));
}

Watcher::Watcher(Client& client, PollListener& listener, const Clock& clock, Duration interval)
    : poller_(client), listener_(listener), clock_(clock), pace_(interval), thread_([this] { Run(); }) {}

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

Duration Watcher::PollOnce() {
  const Client::List<Partition> partitions = poller_.partitions();
  const Client::List<Reservation> reservations = poller_.reservations();
  const Time begun = clock_.Now();
  const absl::StatusOr<Changes> changes = poller_.Poll();
  // What the listener does with it is no question to slurmctld. And what a poll that failed took says nothing
  // of slurmctld's load.
  const Duration pause = pace_.After(changes.ok() ? clock_.Now() - begun : Duration(0));
  if (changes.status().code() != health_.code()) {
    health_ = changes.status();
    listener_.OnHealth(health_);
  }
  if (!changes.ok()) return pause;
  if (partitions != poller_.partitions() || reservations != poller_.reservations())
    listener_.OnInventory(poller_.partitions(), poller_.reservations());
  if (!changes->empty()) listener_.OnChanges(*changes);
  {
    MutexLock lock(mutex_);
    woken_ = false;  // whoever woke it before this is served by this poll
  }
  listener_.OnPolled(poller_.jobs(), !changes->empty());
  return pause;
}

void Watcher::Run() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    lock.Unlock();
    const Duration pause = PollOnce();
    lock.Lock();
    wake_.WaitFor(mutex_, pause, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopping_ || (woken_ && health_.ok());
    });
  }
}

}  // namespace siding::slurm
