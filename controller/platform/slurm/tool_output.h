// What Slurm's command-line tools print, read into values. Pure. Errors (kInternal: not ours to mend) name
// the tool and the field; what later versions of Slurm add is skipped. kUnavailable: slurmctld did not answer.
// the tool.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "controller/platform/slurm/values.h"

namespace siding {

absl::StatusOr<std::vector<SlurmJob>> ParseJobs(const std::string& json);    // squeue --json
absl::StatusOr<std::vector<SlurmNode>> ParseNodes(const std::string& json);  // sinfo --json
// scontrol --oneliner show partitions | reservations, with times in seconds (SLURM_TIME_FORMAT=%s).
absl::StatusOr<std::vector<SlurmPartition>> ParsePartitions(const std::string& text);
absl::StatusOr<std::vector<SlurmReservation>> ParseReservations(const std::string& text);

}  // namespace siding
