#include "controller/platform/slurm/steering.h"

#include <utility>

namespace siding::slurm {

void Steering::Want(Wishes wishes) {
  wishes_ = std::move(wishes);
  due_ = true;
}

std::vector<StepTaken> Steering::Turn(const std::vector<QueueJob>& jobs, bool changed, Time now) {
  std::vector<StepTaken> taken;
  if (!wishes_ || !(changed || due_ || (retry_ && now >= *retry_))) return taken;
  const auto reservations = client_.Reservations();
  due_ = false;
  retry_.reset();
  if (!reservations.ok()) {
    retry_ = now + kTryAgain;
    taken.push_back({Step{"reservations", {"looked at"}, {}, {}}, reservations.status()});
    return taken;
  }
  for (Step& step : StepsTowards(*wishes_, jobs, **reservations, now)) {
    const absl::Status status = Take(client_, step);
    if (!status.ok()) retry_ = now + kTryAgain;
    taken.push_back({std::move(step), status});
  }
  return taken;
}

}  // namespace siding::slurm
