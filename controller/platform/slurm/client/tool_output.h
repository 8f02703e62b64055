// What Slurm's command-line tools print, read into values. Pure. Errors (kInternal: not ours to mend) name
// the tool and the field; what later versions of Slurm add is skipped. kUnavailable: slurmctld did not
// answer. the tool.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "controller/platform/slurm/client/values.h"

namespace siding::slurm {

absl::StatusOr<std::vector<QueueJob>> ParseQueue(const std::string& json);   // squeue --json
absl::StatusOr<std::vector<QueueNode>> ParseNodes(const std::string& json);  // sinfo --json
// scontrol --oneliner show partitions | reservations, with times in seconds (SLURM_TIME_FORMAT=%s).
absl::StatusOr<std::vector<Partition>> ParsePartitions(const std::string& text);
absl::StatusOr<std::vector<Reservation>> ParseReservations(const std::string& text);

}  // namespace siding::slurm
