// What can be done with each job that is in the way, when its nodes are free then, and what it costs.
//
// Loss in node-seconds (n nodes; the ranks act in parallel, so the slowest counts):
//   suspend     0: the job stands still while the request runs, as every other victim does
//   checkpoint  n * (dump + restore): time in which it computes nothing beyond that
//   app         n * grace: the longest that saving may take
//   kill        n * (now - durable_at): work that has to be done again
// The time for which a victim waits until nodes are free again is the same for all ways and so left out.
// Losses are kept as whole node-milliseconds, so that sums are exact and comparisons have no tolerance.
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
  Tier tier = Tier::kShared;  // kCheckpoint only
  Duration release{0};        // from now until the nodes are predicted free, if nobody else writes
  int64_t loss_ms = 0;        // node-milliseconds
  Bytes shared_bytes;         // that go to the shared tier

  // Memory and GPUs stay with a frozen job; only its slots are given back.
  bool StaysInRam() const { return method == Method::kSuspend; }
  bool ToLocalDisk() const { return method == Method::kCheckpoint && tier == Tier::kLocal; }
};

// A job that could make way, or the reason why it may not.
struct Candidate {
  const JobView* job = nullptr;
  std::vector<int> nodes;       // by rank: index into the snapshot's nodes; -1: not among them
  std::vector<Option> options;  // in the order of Method, local before shared
  std::string why_not;          // not empty if options is empty
  std::string note;             // which of its methods cannot be used, and why; may be empty
};

// One per job of the snapshot, in its order; they point into it. Deadlines are not looked at here.
std::vector<Candidate> MakeCandidates(const Snapshot& snapshot, const Policy& policy);

}  // namespace siding
