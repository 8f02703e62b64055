#include "controller/platform/slurm/reconcile/reconciler.h"

#include <utility>

namespace siding::slurm {

void Reconciler::SetDesired(DesiredState desired) {
  MutexLock lock(mutex_);
  next_ = std::move(desired);
}

void Reconciler::SetPriorityByAge(int64_t by_age) {
  if (by_age_ == by_age) return;
  by_age_ = by_age;
  anew_ = true;
}

std::vector<StepResult> Reconciler::Reconcile(const std::vector<QueueJob>& jobs, bool changed, Time now) {
  bool fresh = std::exchange(anew_, false);
  {
    MutexLock lock(mutex_);
    if (next_) {
      desired_ = std::exchange(next_, std::nullopt);
      fresh = true;
    }
  }
  std::vector<StepResult> taken;
  if (!desired_ || !(changed || fresh || (retry_ && now >= *retry_))) return taken;
  const auto reservations = client_.Reservations();
  retry_.reset();
  if (!reservations.ok()) {
    retry_ = now + kRetryAfter;
    taken.push_back({Step{"reservations", {"looked at"}, {}, {}}, reservations.status()});
    return taken;
  }
  for (Step& step : StepsTowards(*desired_, jobs, **reservations, now, by_age_)) {
    const absl::Status status = Apply(client_, step);
    if (!status.ok()) retry_ = now + kRetryAfter;
    taken.push_back({std::move(step), status});
    if (absl::IsUnavailable(status)) break;
  }
  return taken;
}

}  // namespace siding::slurm
