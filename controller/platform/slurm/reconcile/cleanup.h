// Takes back what siding has done to a Slurm and nobody is left to take back: reservations, chosen
// nodes, suspensions.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "controller/platform/slurm/client/client.h"
#include "controller/platform/slurm/reconcile/steps.h"

namespace siding::slurm {

// Brings Slurm to where siding desires nothing, step by step, whatever single steps come to; with `dry_run`
// only says what it would do. An error only if Slurm could not be asked what there is. Doing it again is
// harmless.
absl::StatusOr<std::vector<StepResult>> CleanUp(Client& client, bool dry_run);

}  // namespace siding::slurm
