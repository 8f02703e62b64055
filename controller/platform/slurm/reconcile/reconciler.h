// Brings Slurm from what is observed to what is desired, one pass after the other.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/mutex.h"
#include "common/units.h"
#include "controller/platform/manager.h"
#include "controller/platform/slurm/client/client.h"
#include "controller/platform/slurm/reconcile/steps.h"

namespace siding::slurm {

// What failed is tried again after this, or when something has changed.
inline constexpr Duration kRetryAfter = std::chrono::seconds(5);

class Reconciler {
 public:
  // The client must outlive it.
  explicit Reconciler(Client& client) : client_(client) {}

  // This is desired from now on. Until it is called nothing is done and nothing taken back: a controller that
  // has just started does not know yet what it wants. Thread-safe, and does not wait for a pass.
  void SetDesired(DesiredState desired);

  // Settings::priority_by_age, once they are known and when that changes. By the thread that reconciles.
  void SetPriorityByAge(int64_t by_age);

  // Takes the steps from these jobs, as observed now, to the desired state; none while nothing has changed.
  // A step that fails does not keep the others from being taken, but a Slurm that does not answer is not
  // asked again: each call would wait for it, and nothing be seen meanwhile. One thread at a time.
  std::vector<StepResult> Reconcile(const std::vector<QueueJob>& jobs, bool changed, Time now);

 private:
  Client& client_;
  std::optional<DesiredState> desired_;
  int64_t by_age_ = 0;
  bool anew_ = false;  // a pass is due, though nothing in Slurm has changed
  std::optional<Time> retry_;
  Mutex mutex_;
  std::optional<DesiredState> next_ ABSL_GUARDED_BY(mutex_);  // not taken up yet
};

}  // namespace siding::slurm
