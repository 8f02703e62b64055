#include "controller/platform/slurm/watcher.h"

#include <algorithm>

#include "common/status.h"

namespace siding::slurm {

absl::StatusOr<Changes> Looker::Look() {
  SIDING_ASSIGN_OR_RETURN(Client::List<QueueJob> jobs, client_.Jobs());
  SIDING_ASSIGN_OR_RETURN(Client::List<QueueNode> nodes, client_.Nodes());
  Changes changes;
  if (jobs != jobs_) changes.jobs = Compare(*jobs_, *jobs);
  if (nodes != nodes_) changes.nodes = Compare(*nodes_, *nodes);
  jobs_ = std::move(jobs);
  nodes_ = std::move(nodes);
  return changes;
}

Duration PauseAfter(Duration look, Duration interval) { return std::max({kLeastPause, interval, look * 19}); }

Watcher::Watcher(Client& client, ChangeListener& listener, Duration interval)
    : looker_(client), listener_(listener), interval_(interval), thread_([this] { Run(); }) {}

Watcher::~Watcher() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

void Watcher::LookOnce() {
  const absl::StatusOr<Changes> changes = looker_.Look();
  if (changes.status().code() != health_.code()) {
    health_ = changes.status();
    listener_.OnHealth(health_);
  }
  if (changes.ok() && !changes->empty()) listener_.OnChanges(*changes);
}

void Watcher::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const auto begun = std::chrono::steady_clock::now();
    LookOnce();
    const auto took = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begun);
    // One that failed has waited for an answer for long enough; what it took says nothing of slurmctld's
    // load.
    const Duration pause = PauseAfter(health_.ok() ? took : Duration(0), interval_);
    lock.lock();
    stop_.wait_for(lock, pause, [this] { return stopping_; });
  }
}

}  // namespace siding::slurm
