// Takes back what siding has done to a Slurm and nobody is left to take back: reservations, holds, chosen
// nodes.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "controller/platform/slurm/client.h"

namespace siding::slurm {

// What is to be done for one job that waits.
struct JobRepair {
  JobNumber job;
  bool release = false;
  bool unpin = false;   // from the nodes that siding chose
  std::string out_of;   // a reservation of siding's; empty: it is in none
  std::string comment;  // its AdminComment without siding's mark
  bool operator==(const JobRepair&) const = default;
};
struct CleanupPlan {
  std::vector<JobRepair> jobs;
  std::vector<std::string> reservations;  // to be deleted, after the jobs were taken out of them
};
// Pure. What users and administrators held, chose or reserved themselves is not in it.
CleanupPlan PlanCleanup(const std::vector<QueueJob>& jobs, const std::vector<Reservation>& reservations);

struct CleanupStep {
  std::string target;                // "job 42", "reservation siding-7"
  std::vector<std::string> actions;  // "released", "out of reservation siding-7"
  absl::Status status;               // of the first action that failed; the mark stays then
};
// Does it, step by step, whatever single steps come to; with `dry_run` only says what it would do. An error
// only if Slurm could not be asked what there is. Doing it again is harmless.
absl::StatusOr<std::vector<CleanupStep>> CleanUp(Client& client, bool dry_run);

}  // namespace siding::slurm
