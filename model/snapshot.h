// Everything the planner may know, as one value. The engine takes it; nothing in it changes afterwards.
#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/units.h"
#include "model/job.h"

namespace siding {

// Speed of moving a checkpoint one way, as the node's agent has measured it. The time it takes is taken to be
// distributed log-normally: it is a product of many small hindrances.
struct Rate {
  double bytes_per_second = 0;  // median; 0: not measured, so not to be used
  Duration overhead{0};         // median; paid once, whatever the size
  double spread = 0;            // standard deviation of the time's logarithm
  bool known() const { return bytes_per_second > 0; }
  // The time within which it is done, `deviations` standard deviations on the safe side. 0: the median.
  Duration For(Bytes size, double deviations = 0) const {
    const Duration median = overhead + FromSeconds(static_cast<double>(size.value) / bytes_per_second);
    return deviations == 0 ? median : FromSeconds(ToSeconds(median) * std::exp(deviations * spread));
  }
};

struct TierRates {
  Rate dump;
  Rate restore;
};

// Of a tier that is never full.
inline constexpr Bytes kUnlimited{std::numeric_limits<int64_t>::max()};

// One node as it is now. `free` is what no job holds and no request has been promised; resources held by
// suspended jobs are not in it for slots and GPUs they gave up, and are for RAM (see `ram_available`).
struct NodeView {
  NodeId id;
  bool usable = true;  // its agent is connected and it is not cordoned
  Resources capacity;
  Resources free;
  Bytes ram_available;  // RAM that frozen jobs may keep while the request runs beside them
  // For images, in its tiers, less what is to be written there already; and why none can be written there
  // whatever is free, empty if it can.
  Bytes local_disk_free;
  Bytes shared_disk_free = kUnlimited;  // as this node sees it
  std::string local_problem, shared_problem;
  TierRates local;
  TierRates shared;  // this node's own link to the shared tier, alone on it
  TierRates gpu;     // dump: GPU memory to RAM, before a job can be frozen or dumped; restore: and back
};

// A job that holds nodes now.
struct JobView {
  JobId id;
  JobKind kind = JobKind::kBatch;
  int priority = 0;
  int job_class = -1;         // of the policy, by index; -1: none
  std::vector<NodeId> nodes;  // by rank
  Resources per_node;
  MethodSet methods;                       // what the job asked for, less what was found not to work
  std::string methods_note;                // why methods are missing, for the explanation
  std::map<Method, Time> methods_back_at;  // of `methods`: they have failed, and are there again from then on
  std::string timer;          // which process has one that runs on while it is frozen; empty: none is known
  std::vector<Bytes> memory;  // by rank: resident bytes and those on GPUs, the predicted image size
  std::vector<Bytes> gpu_memory;  // by rank: the part that is on GPUs; empty: it asked for none
  Duration gpu_lock{0};           // it stands still so long before a drain of its GPUs begins
  Duration ranks_wait{0};         // of a checkpoint: they stand still for each other
  Time running_since;             // of this incarnation
  Time durable_at;                // last durable checkpoint, or the start of the work
  // Once it is killed, until it has been restored from its image; none: it has no image.
  std::optional<Duration> way_back;
  // Its checkpoints on schedule see to it that no more work is lost; 0: there are none.
  Duration most_lost{0};
  // For so long it stands still for an image after which it runs on; none: not known.
  std::optional<Duration> checkpoint_stop;
  std::optional<Duration> app_grace;
  Duration kill_grace{0};
  Duration notice{0};                   // it is told so long before it is frozen or dumped
  bool can_return_to_its_nodes = true;  // so an image on their own disks will do
  int preemptions = 0;
  std::optional<int> max_preemptions;
  std::optional<Time> last_preempted;
  // A checkpoint is being made, after which it runs on: until then it can only be killed.
  std::optional<Time> saved_by;
  std::optional<Time> ends_at;  // it will have left its nodes by itself by then; none: unknown

  // Set while the job is already being taken off its nodes; then it is no longer a choice.
  std::optional<Time> releasing_at;  // predicted
  JobId releasing_for;               // the request that will have the nodes; 0: any
  bool releasing_to_ram = false;     // it is being frozen: its memory stays with it
};

// The way to shared storage that all nodes use together.
struct SharedTier {
  double bytes_per_second = 0;  // aggregate; 0: no shared tier
  Bytes in_flight;              // ordered and not yet written
  Bytes free = kUnlimited;      // for the images of all nodes together, less what is to be written already
};

// What the platform lets siding do with jobs.
struct Capabilities {
  bool freezing_frees_slots = true;
  bool freezing_frees_gpus = true;
  bool operator==(const Capabilities&) const = default;
};

struct Snapshot {
  Time now;
  Capabilities capabilities;
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
  Time not_before;   // it cannot start before this, so no job need leave earlier
  Duration hold{0};  // how long it will keep the nodes; 0: the policy's guess
};

}  // namespace siding
