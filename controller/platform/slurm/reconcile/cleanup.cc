#include "controller/platform/slurm/reconcile/cleanup.h"

#include "common/status.h"

namespace siding::slurm {

absl::StatusOr<std::vector<StepResult>> CleanUp(Client& client, bool dry_run) {
  SIDING_ASSIGN_OR_RETURN(const auto jobs, client.Jobs());
  SIDING_ASSIGN_OR_RETURN(const auto reservations, client.Reservations());
  std::vector<StepResult> steps;
  for (Step& step : StepsTowards(DesiredState(), *jobs, *reservations, Time(), 0)) {
    const absl::Status status = dry_run ? absl::OkStatus() : Apply(client, step);
    steps.push_back({std::move(step), status});
  }
  return steps;
}

}  // namespace siding::slurm
