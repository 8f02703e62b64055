// Everything the planner may know, as one value. The engine takes it; nothing in it changes afterwards.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/units.h"
#include "model/job.h"

namespace siding {

// Predicted speed of moving a checkpoint one way. A pessimistic quantile of what the node's agent has
// measured, so that adding it up is safe against a deadline.
struct Rate {
  double bytes_per_second = 0;  // 0: not measured, so not to be used
  Duration overhead{0};         // paid once, whatever the size
  bool known() const { return bytes_per_second > 0; }
  Duration For(Bytes size) const {
    return overhead + FromSeconds(static_cast<double>(size.value) / bytes_per_second);
  }
};

struct TierRates {
  Rate dump;
  Rate restore;
};

// One node as it is now. `free` is what no job holds and no request has been promised; resources held by
// suspended jobs are not in it for slots and GPUs they gave up, and are for RAM (see `ram_available`).
struct NodeView {
  NodeId id;
  bool usable = true;  // its agent is connected and it is not cordoned
  Resources capacity;
  Resources free;
  Bytes ram_available;  // RAM that frozen jobs may keep while the request runs beside them
  Bytes local_disk_free;
  TierRates local;
  TierRates shared;  // this node's own link to the shared tier, alone on it
};

// A job that holds nodes now.
struct JobView {
  JobId id;
  JobKind kind = JobKind::kBatch;
  int priority = 0;
  std::vector<NodeId> nodes;  // by rank
  Resources per_node;
  MethodSet methods;          // what the job asked for, less what was found not to work
  std::string methods_note;   // why methods are missing, for the explanation
  std::vector<Bytes> memory;  // by rank: resident bytes, the predicted image size
  Time running_since;         // of this incarnation
  Time durable_at;            // last durable checkpoint, or the start of the work
  std::optional<Duration> app_grace;
  Duration kill_grace{0};
  int preemptions = 0;
  std::optional<int> max_preemptions;
  std::optional<Time> last_preempted;

  // Set while the job is already being taken off its nodes; then it is no longer a choice.
  std::optional<Time> releasing_at;  // predicted
  JobId releasing_for;               // the request that will have the nodes; 0: anybody
};

// The way to shared storage that all nodes use together.
struct SharedTier {
  double bytes_per_second = 0;  // aggregate; 0: no shared tier
  Bytes in_flight;              // ordered and not yet written
};

struct Snapshot {
  Time now;
  std::vector<NodeView> nodes;
  std::vector<JobView> jobs;
  SharedTier shared;
};

// A job with a deadline that needs `nodes` nodes, each with `per_node` to spare, at `start_by`.
struct Request {
  JobId id;
  int nodes = 1;
  Resources per_node;
  Time start_by;
};

}  // namespace siding
