// The steps from what is observed in Slurm to what is desired. Pure, but for Apply.
//
// The desired state is the whole of it at any moment: whatever bears siding's mark (client/marks.h) and is
// not desired any more is taken back, whoever did it. So a controller that was restarted states its desired
// state again and is done, and with an empty one nothing of siding's is left.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "controller/platform/manager.h"
#include "controller/platform/slurm/client/client.h"

namespace siding::slurm {

// What of a Client is to be called: Update, Do, CreateReservation or DeleteReservation (the name).
using Call = std::variant<JobChange, Verb, Reservation, std::string>;
// Calls for one job or one reservation, in this order; once one has failed, the others of the step must not
// be made. What siding does is marked before it is done, and the mark goes when it is undone.
struct Step {
  std::string target;                // "job 42", "reservation siding-7": for people, as the following
  std::vector<std::string> actions;  // "suspended", "out of reservation siding-7"
  JobNumber job;                     // that JobChange and Verb are about
  std::vector<Call> calls;
};
struct StepResult {
  Step step;
  absl::Status status;  // of the first call that failed
};

// What users and administrators held, chose or reserved themselves is not touched: what is desired against it
// is not done. Slurm lets nobody choose the nodes of one element of an array. A reservation is not made again
// for a job that has its nodes, should it end before the job. `by_age`: Settings::priority_by_age.
std::vector<Step> StepsTowards(const DesiredState& desired, const std::vector<QueueJob>& jobs,
                               const std::vector<Reservation>& reservations, Time now, int64_t by_age);

// Makes the calls; the first error ends it.
absl::Status Apply(Client& client, const Step& step);

}  // namespace siding::slurm
