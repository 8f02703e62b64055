// A job as a call of Slurm's sbatch: what `sidingctl submit` does where Slurm has the queue. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "siding/v1/types.pb.h"

namespace siding::cli {

// From "sbatch" on. The job is complete: it has a command, nodes, a name, a working folder and an absolute
// output. With several nodes, one task runs on each, started by srun. kInvalidArgument, naming the field, for
// what Slurm has no counterpart of.
absl::StatusOr<std::vector<std::string>> SbatchCommand(const v1::JobSpec& job);

}  // namespace siding::cli
