// What siding wants of Slurm, and the steps from what is so to what is wanted. Pure.
//
// The wishes are the whole of it at any moment: whatever bears siding's mark (marks.h) and is not wished for
// any more is taken back, whoever did it. So a controller that was restarted states its wishes again and is
// done, and without wishes nothing of siding's is left.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "controller/platform/slurm/client.h"

namespace siding::slurm {

struct JobWish {
  bool held = false;          // while it waits: is not to start
  std::vector<NodeId> nodes;  // while it waits: where it is to start; empty: anywhere
  std::string why;            // for people: "makes way for job 42"
  bool suspended = false;     // while it has nodes: others may have its CPUs
};
// Nodes that are kept for one job, and that it is to have. Once it has them they are not kept anew, should
// the reservation end before the job.
struct NodesWish {
  std::vector<NodeId> nodes;
  std::string user;  // whose job it is
  Time until;        // if siding never comes back, they are free again then
};
struct Wishes {
  std::map<JobNumber, JobWish> jobs;
  std::map<JobNumber, NodesWish> kept;
};

// What of a Client is to be called: Update, Do, CreateReservation or DeleteReservation (the name).
using Call = std::variant<JobChange, Verb, Reservation, std::string>;
// Calls for one job or one reservation, in this order; once one has failed, the others of the step must not
// be made. What siding does is marked before it is done, and the mark goes when it is undone.
struct Step {
  std::string target;                // "job 42", "reservation siding-7": for people, as the following
  std::vector<std::string> actions;  // "held", "out of reservation siding-7"
  JobNumber job;                     // that JobChange and Verb are about
  std::vector<Call> calls;
};

// What users and administrators held, chose or reserved themselves is not touched: a wish that it is in the
// way of is not granted. Slurm lets nobody choose the nodes of one element of an array.
std::vector<Step> StepsTowards(const Wishes& wishes, const std::vector<QueueJob>& jobs,
                               const std::vector<Reservation>& reservations, Time now);

// Makes the calls; the first error ends it.
absl::Status Take(Client& client, const Step& step);

}  // namespace siding::slurm
