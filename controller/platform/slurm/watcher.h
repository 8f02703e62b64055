// Looks at Slurm again and again, says what has changed, and keeps it as it is wished to be.
//
// Slurm tells nobody of changes (its triggers come up to 15 s late), so it has to be asked. A question to
// which nothing has changed costs slurmctld next to nothing through libslurm (docs/bench-slurm.md).
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/units.h"
#include "controller/platform/slurm/changes.h"
#include "controller/platform/slurm/client.h"
#include "controller/platform/slurm/steering.h"

namespace siding::slurm {

// One look after the other. Not thread-safe. The client must outlive it.
class Looker {
 public:
  explicit Looker(Client& client) : client_(client) {}
  // What has changed since the last look that succeeded; at the first one all that there is has. On an error
  // nothing counts as changed: a Slurm that does not answer has not lost its jobs.
  absl::StatusOr<Changes> Look();
  // As they were at that look.
  const std::vector<QueueJob>& jobs() const { return *jobs_; }

 private:
  Client& client_;
  Client::List<QueueJob> jobs_ = std::make_shared<const std::vector<QueueJob>>();
  Client::List<QueueNode> nodes_ = std::make_shared<const std::vector<QueueNode>>();
};

// Hears of changes, on the watcher's thread, one call at a time.
class ChangeListener {
 public:
  virtual ~ChangeListener() = default;
  virtual void OnChanges(const Changes& changes) = 0;  // never of none
  // Slurm stopped answering (the error), or answers again (OK). Not called while it stays as it was; at first
  // it is taken to answer.
  virtual void OnHealth(const absl::Status& health) = 0;
  // Something was done, or failed, because it is wished.
  virtual void OnStep(const StepTaken& taken) = 0;
};

// Slurm is not asked more often than this.
inline constexpr Duration kLeastPause = std::chrono::milliseconds(200);
// The pause after a look that took so long: never less than `interval`, and long enough for looking to take
// no more than a twentieth of the time.
Duration PauseAfter(Duration look, Duration interval);

// Looks on a thread of its own from construction to destruction, which waits for a look that is under way.
class Watcher {
 public:
  // All must outlive it; nobody else may use the client meanwhile. An interval below kLeastPause is
  // kLeastPause.
  Watcher(Client& client, ChangeListener& listener, const Clock& clock, Duration interval = kLeastPause);
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // From now on these are the wishes (see Steering::Want); they are taken up at once. Thread-safe, and does
  // not wait: may be called from the listener.
  void Want(Wishes wishes);

 private:
  void Run();
  void LookOnce();
  void Steer(bool changed);

  Looker looker_;
  Steering steering_;
  ChangeListener& listener_;
  const Clock& clock_;
  const Duration interval_;
  absl::Status health_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;         // guarded by mutex_
  std::optional<Wishes> wishes_;  // new ones; guarded by mutex_
  std::thread thread_;
};

}  // namespace siding::slurm
