#include "controller/platform/slurm/watcher.h"

#include <algorithm>
#include <utility>

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

Watcher::Watcher(Client& client, ChangeListener& listener, const Clock& clock, Duration interval)
    : looker_(client),
      steering_(client),
      listener_(listener),
      clock_(clock),
      interval_(interval),
      thread_([this] { Run(); }) {}

Watcher::~Watcher() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Watcher::Want(Wishes wishes) {
  {
    std::lock_guard lock(mutex_);
    wishes_ = std::move(wishes);
  }
  wake_.notify_all();
}

void Watcher::LookOnce() {
  const absl::StatusOr<Changes> changes = looker_.Look();
  if (changes.status().code() != health_.code()) {
    health_ = changes.status();
    listener_.OnHealth(health_);
  }
  if (!changes.ok()) return;
  if (!changes->empty()) listener_.OnChanges(*changes);
  Steer(!changes->empty());
}

void Watcher::Steer(bool changed) {
  std::optional<Wishes> wishes;
  {
    std::lock_guard lock(mutex_);
    wishes_.swap(wishes);
  }
  if (wishes) steering_.Want(*std::move(wishes));
  for (const StepTaken& taken : steering_.Turn(looker_.jobs(), changed, clock_.Now()))
    listener_.OnStep(taken);
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
    // Wishes do not wait for the next look, unless Slurm does not answer.
    wake_.wait_for(lock, pause, [this] { return stopping_ || (wishes_ && health_.ok()); });
  }
}

}  // namespace siding::slurm
