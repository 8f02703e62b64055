// Polls Slurm again and again on a thread of its own, and tells a listener.
//
// Slurm tells nobody of changes (its triggers come up to 15 s late), so it has to be asked. A question to
// which nothing has changed costs slurmctld next to nothing through libslurm (docs/results/slurm.md).
#pragma once

#include <algorithm>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/units.h"
#include "controller/platform/slurm/client/client.h"
#include "controller/platform/slurm/watch/changes.h"
#include "controller/platform/slurm/watch/poller.h"

namespace siding::slurm {

// Called on the watcher's thread, one call at a time.
class PollListener {
 public:
  virtual ~PollListener() = default;
  // Before OnChanges() of the same poll: partitions or reservations are others than they were.
  virtual void OnInventory(const Client::List<Partition>& partitions,
                           const Client::List<Reservation>& reservations) = 0;
  virtual void OnChanges(const Changes& changes) = 0;  // never of none
  // After every poll that succeeded, and after OnChanges(): all jobs, and whether there were changes. What is
  // desired of Slurm by now is to be brought about.
  virtual void OnPolled(const std::vector<QueueJob>& jobs, bool changed) = 0;
  // Slurm stopped answering (the error), or answers again (OK). Not called while it stays as it was; at first
  // it is taken to answer.
  virtual void OnHealth(const absl::Status& health) = 0;
};

// Slurm is not asked more often than this.
inline constexpr Duration kLeastPause = std::chrono::milliseconds(200);
// What a poll takes makes the pause no longer than this: meanwhile siding sees nothing of Slurm.
inline constexpr Duration kMostPause = std::chrono::seconds(5);

// How long Slurm is left alone between two polls. Not thread-safe.
class Pace {
 public:
  // An interval below kLeastPause is kLeastPause.
  explicit Pace(Duration interval) : least_(std::max(kLeastPause, interval)) {}
  // The pause after a poll that took so long: never less than the interval, and up to kMostPause long enough
  // for polling to take no more than a twentieth of the time. The shorter one of the last two polls counts:
  // one alone that took long may have waited for a slurmctld that was away, and the first one brings
  // everything.
  Duration After(Duration poll);

 private:
  const Duration least_;
  Duration last_{0};
};

// Polls from construction to destruction, which waits for a poll that is under way.
class Watcher {
 public:
  // All must outlive it; nobody else may use the client meanwhile. `interval`: as that of Pace.
  Watcher(Client& client, PollListener& listener, const Clock& clock, Duration interval = kLeastPause);
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // OnPolled() is to be called soon: by the poll under way if it has not come to it yet, otherwise by another
  // one that begins at once. While Slurm does not answer it waits until it does. Thread-safe, and does not
  // wait: may be called from the listener.
  void Wake();

 private:
  void Run();
  // How long to wait then.
  Duration PollOnce();

  Poller poller_;
  PollListener& listener_;
  const Clock& clock_;
  Pace pace_;
  absl::Status health_;
  Mutex mutex_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace siding::slurm
