// Takes back what siding has done to a Slurm and nobody is left to take back: reservations, holds, chosen
// nodes.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "controller/platform/slurm/client.h"
#include "controller/platform/slurm/wishes.h"

namespace siding::slurm {

struct CleanupStep {
  Step step;
  absl::Status status;  // of the first call that failed
};
// Brings Slurm to where siding wishes nothing, step by step, whatever single steps come to; with `dry_run`
// only says what it would do. An error only if Slurm could not be asked what there is. Doing it again is
// harmless.
absl::StatusOr<std::vector<CleanupStep>> CleanUp(Client& client, bool dry_run);

}  // namespace siding::slurm
