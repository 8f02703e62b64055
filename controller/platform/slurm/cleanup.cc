#include "controller/platform/slurm/cleanup.h"

#include "common/status.h"

namespace siding::slurm {

absl::StatusOr<std::vector<CleanupStep>> CleanUp(Client& client, bool dry_run) {
  SIDING_ASSIGN_OR_RETURN(const auto jobs, client.Jobs());
  SIDING_ASSIGN_OR_RETURN(const auto reservations, client.Reservations());
  std::vector<CleanupStep> steps;
  for (Step& step : StepsTowards(Wishes(), *jobs, *reservations, Time())) {
    const absl::Status status = dry_run ? absl::OkStatus() : Take(client, step);
    steps.push_back({std::move(step), status});
  }
  return steps;
}

}  // namespace siding::slurm
