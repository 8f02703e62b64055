// What can be done with each job that is in the way, and what it costs.
//
// Loss, in node-seconds (n nodes, all ranks act in parallel, the slowest counts):
//   suspend     0: the job stands still only while the request runs, and so does every other victim
//   checkpoint  n * (dump + restore): time in which it computes nothing beyond that
//   app         n * grace: the longest that saving may take
//   kill        n * (now - durable_at): work that has to be done again
// The time for which a victim waits until nodes are free again is the same for all ways and so left out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/plan.h"
#include "model/policy.h"
#include "model/snapshot.h"

namespace siding {

struct Option {
  Method method = Method::kKill;
  Tier tier = Tier::kShared;
  Duration release{0};        // from now until the nodes are predicted free
  int64_t loss_ms = 0;        // node-milliseconds
  Bytes shared_bytes;         // that go to the shared tier
  bool stays_in_ram = false;  // memory and GPUs are not given back
  bool to_local_disk = false;
};

// A job that could make way, or the reason why it may not.
struct Candidate {
  const JobView* job = nullptr;
  std::vector<Option> options;  // in the order of Method, local before shared
  std::string why_not;          // if options is empty
};

// One per job of the snapshot, in its order. Deadlines are not looked at here.
std::vector<Candidate> MakeCandidates(const Snapshot& snapshot, const Policy& policy);

}  // namespace siding
