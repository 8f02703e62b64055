// The controller's state. The durable part changes only by Apply(state, event); the observed part is what
// agents reported last. It is lost with the process: they report it again.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/units.h"
#include "controller/engine/state/job_index.h"
#include "controller/platform/manager.h"
#include "model/checkpoint_cost.h"
#include "model/event.h"
#include "model/job.h"
#include "model/lifecycle.h"
#include "model/plan.h"
#include "siding/v1/agent.pb.h"

namespace siding {

// ---- Durable state. ----

struct CheckpointRecord {
  CheckpointId id;
  JobId job;
  int incarnation = 0;
  int first_rank = 0;  // agents' number for rank 0
  Tier tier = Tier::kShared;
  std::vector<NodeId> nodes;  // by rank, that dumped it
  std::map<int, int> exited;  // ranks without an image: they had ended before, with this code
  Bytes bytes;
  Bytes new_bytes;                     // of them, what no earlier image has; 0: not known
  std::map<int, std::string> digests;  // by rank: of its image's manifest (store/store.h); none: not known
  Time created;
  Duration ran{0};      // of its job's walltime, by then
  Duration stopped{0};  // for so long it stopped a job that ran on; 0: not known
  Duration took{0};     // from the order, or the end of the notice, until it counted; 0: it does not
  CheckpointState state = CheckpointState::kBeingMade;
  NodeCopies copies = NodeCopies::kNone;
  std::string note;

  // So how long it took says nothing of how fast its tier is.
  bool SharesBytes() const { return new_bytes > Bytes{} && new_bytes < bytes; }
  // Of its bytes: those of one rank that has an image.
  Bytes PartOfRank() const {
    return Bytes{bytes.value / std::max<int64_t>(1, std::ssize(nodes) - std::ssize(exited))};
  }
  // The node's own disk has its image as well.
  bool HasCopyOn(const NodeId& node, int rank) const {
    return copies == NodeCopies::kUsed && rank < std::ssize(nodes) &&
           nodes[static_cast<size_t>(rank)] == node;
  }
  // Empty: not known.
  std::string DigestOf(int rank) const {
    const auto found = digests.find(rank);
    return found == digests.end() ? "" : found->second;
  }
};

struct JobRecord {
  JobId id;
  JobSpec spec;
  std::string request_key;
  JobState state = JobState::kPending;
  Time submitted;
  Time state_since;
  Time running_since;  // of this incarnation
  Time durable_at;     // last durable checkpoint, or the start of the work
  std::optional<Time> first_started;
  std::optional<Time> ended;
  int exit_code = 0;  // of its processes, or what stands for it; not 0 once it has failed or was cancelled
  int incarnation = 0;
  bool from_copy = false;          // a copy of the journal was put back, and it has not been started since
  int first_rank = 0;              // agents' number for rank 0
  int order = 0;                   // counts orders within the incarnation: the operation's number for agents
  int ordered_as = 0;              // what `order` was when the order under way was recorded; see IsOfOrder()
  std::vector<NodeId> nodes;       // by rank, while it holds nodes
  std::vector<NodeId> last_nodes;  // that it held before
  // Of these, where tasks of its last incarnation have not been seen gone: it is not started again before.
  std::vector<NodeId> left_on;
  std::map<int, int> exited;  // rank -> exit code
  Time last_exit;             // of a rank
  std::map<int, int> notes;   // agents' rank -> how many notes of its task of this incarnation are recorded
  std::map<Method, std::string> lost_methods;
  std::map<Method, Time> methods_back_at;  // of these
  int start_failures = 0;                  // in a row, because of nodes
  int restore_failures = 0;                // in a row, with the newest checkpoint
  std::vector<CheckpointId> checkpoints;   // visible and good, oldest first
  int checkpoint_count = 0;                // ever ordered: numbers the next
  std::vector<CheckpointId> ordered;       // oldest first; as old ones are gone, they are forgotten
  std::optional<Time> saved_at;            // the program's own newest save: no older than this
  // Of its walltime: up to `runs_since`, which is there while it runs, and by its newest own save. What is
  // run again because it was lost does not count.
  Duration ran{0}, saved_ran{0};
  std::optional<Time> runs_since;
  std::string reason;
  std::optional<JobHeld> held;  // it gets no nodes; see there

  std::optional<OrderWaits> waiting_order;

  // The order under way (kSuspending .. kKilling), as recorded with it.
  JobMoved current;
  Time ordered_at;
  // Where that is to end what had not begun: what it goes back to if the order is withdrawn.
  struct Beginning {
    JobState state;  // kStarting, kRestoring
    JobMoved place;
  };
  std::optional<Beginning> beginning;
  // The request whose nodes this job gave up, while that request waits or runs; 0: none.
  JobId displaced_by;
  std::vector<NodeId> target;  // restore here (migrate)
  int preemptions = 0;
  std::optional<Time> last_preempted;
  bool in_ram = false;             // frozen: also while it is being dumped; holds its memory and nothing else
  std::optional<Time> stopped_at;  // while it is not running after having run
  double lost_node_seconds = 0;
  LossBy left_by = LossBy::kFailure;  // while it has not been seen to run since
  Trends trends;                      // what it has added to those of all jobs
  Totals totals;                      // the same
  int damaged_checkpoints = 0;        // ever found
  CheckpointId
      refused_image;  // the last that no restore took: none is made from then on; empty: there is none
  int gpu_states_lost = 0;
  int restarts = 0;            // from the beginning, after it had run
  std::string restart_reason;  // of the last one
  Time begun;                  // the last one
  int begun_after = 0;         // the incarnation before it: its images, and older ones, are not restored

  // Of images after which it ran on, since it was started or restored; see Learn().
  std::vector<CheckpointCost> checkpoint_costs;
  // For so long all of its ranks stood still for each other in its last dumps; none: not seen. It is also its
  // program's, so it stays when it is restored.
  std::optional<Duration> ranks_waited;
  int checkpoint_failures = 0;  // the same: in a row, since one counted

  // On-demand.
  std::vector<Plan> plans;
  std::optional<Time> preemptible_since;  // when its time was over: it has had no precedence since
};

// An on-demand job that has its nodes by right, or is to have them.
bool IsRequest(const JobRecord& job);
// Of its walltime.
Duration RanFor(const JobRecord& job, Time now);

struct NodeRecord {
  bool cordoned = false;
  std::optional<Time> lost_since;  // an operator has said so, and its agent has not dialled since
};

// ---- Observed state. ----

struct ObservedTask {
  v1::TaskReport report;
  int64_t failure_noted = 0;  // the operation whose failure is in the journal
  std::optional<v1::Progress> progress;
};
// Of starts that failed because of the node. A new controller counts from 0.
struct StartFaults {
  int count = 0;     // in a row: since something has started there, of one job after another
  JobId last;        // whose start failed
  bool out = false;  // until `until`: nothing is started there; then one start is tried
  Time until;
};
// What events have said of it.
struct FaultTold {
  bool stands = false;    // and none that it is over
  bool by_agent = false;  // the last said what its agent says
  Time at;
};
// That did not take an image, since one was last written there.
struct FailedTier {
  int failures = 0;  // in a row
  Time last;
  std::string why;
};
struct ObservedNode {
  bool connected = false;
  Time last_heard;
  Time gone_since;      // while it is not connected, or silent
  Time last_beat;       // its last heartbeat, or its hello
  bool silent = false;  // it is connected, and its heartbeats are missing
  std::string problem;  // why nothing can start there, says its agent; empty: nothing is known against it
  StartFaults starts;
  bool faulty = false;  // nothing new is placed there, because of one of these two: see WhyFaulty()
  FaultTold told;
  size_t kept_bytes = 0;  // of what it has reported of its tasks
  Time claiming_since;    // the minute in which it has had so many tasks of a cluster manager's followed
  int claims = 0;
  std::set<std::pair<TaskId, int64_t>> foreign;  // tasks of other clusters that it has, each with its cluster
  std::map<Tier, FailedTier> failed_tiers;
  // When it said last which images its local tier has, if that is in memory: checkpoints that counted with an
  // image of that rank there.
  std::vector<std::pair<CheckpointId, int>> images_then;
  v1::Hello hello;
  v1::Heartbeat heartbeat;
};

// For everybody who lists nodes, so without what a job's failure may tell of its user. Empty: it is not.
std::string WhyFaulty(const ObservedNode& node);

// What the cluster manager said last, if there is one.
struct ObservedQueue {
  bool seen = false;
  bool answers = true;
  Time answers_since;  // if it does
  std::map<JobId, ManagedJob> jobs;
  std::map<NodeId, ManagedNode> nodes;
  std::map<NodeId, Time> unknown_since;  // of these: the manager does not know yet what is with them
};

// What the journal says.
struct DurableState {
  DurableState() = default;
  DurableState(const DurableState&) = delete;  // `unfinished` and `index` point into `jobs`
  DurableState& operator=(const DurableState&) = delete;
  DurableState& operator=(DurableState&&) = default;

  int64_t last_seq = 0;
  std::map<JobId, JobRecord> jobs;
  // Those of `jobs` that have not ended. What is done often looks only at these: the others are many.
  std::map<JobId, JobRecord*> unfinished;
  JobIndex index;                                           // of those
  std::map<std::pair<uint32_t, std::string>, JobId> keyed;  // by user and request key, the newest of each
  std::set<std::pair<Time, JobId>> ended;                   // the others, by when they ended
  JobId last_job;                                           // the highest number so far
  Tally forgotten;
  Trends forgotten_trends;
  Totals forgotten_totals;
  std::map<CheckpointId, CheckpointRecord> checkpoints;
  std::set<CheckpointId> unwanted;  // those that are deleted or damaged: to be taken out of the store
  std::set<CheckpointId> copied;    // those whose images are on nodes' own disks as well
  std::map<NodeId, NodeRecord> nodes;
  Time restored_at;  // when a copy was put back; 0: it never was
  int64_t copied_until =
      0;  // its last event: later ones of then are not known, and their numbers are given again
  int skipped_orders = 0;  // then, of each job
  // Nodes that were lost, and jobs that were started again then although tasks of theirs may live there. Or
  // that were away when jobs were found elsewhere: what the journal of then knew is not in the copy.
  std::map<NodeId, std::set<JobId>> given_up;

  bool IsLost(const NodeId& node) const {
    const auto record = nodes.find(node);
    return record != nodes.end() && record->second.lost_since.has_value();
  }
};

// What agents and cluster managers reported last. Lost with the process: they report it again.
struct ObservedState {
  std::map<NodeId, ObservedNode> observed_nodes;
  std::map<NodeId, std::map<TaskId, ObservedTask>> observed_tasks;
  ObservedQueue queue;
  // Ranks whose images are in shared storage, say the nodes that have copied them, of checkpoints that are
  // not recorded to be there.
  std::map<CheckpointId, std::set<int>> copied_ranks;
  std::set<NodeId> copying;  // nodes whose last heartbeats list copies
  // Of those that are on nodes' own disks as well: a restore has failed, whatever the reason. The next one
  // reads shared storage.
  std::set<CheckpointId> doubted_copies;
  // Of checkpoints that are on their nodes only: a node does not name that rank's image any more, and it is
  // being found out whether it is in shared storage.
  std::map<std::pair<CheckpointId, int>, Time> missing_images;  // and since when
};

struct ClusterState : DurableState, ObservedState {};

// From what a job that has left its nodes continues: its last good checkpoint or the program's own save,
// whichever is newer.
enum class Resumption { kBeginning, kCheckpoint, kOwnSave };
Resumption ResumptionOf(const DurableState& state, const JobRecord& job);
// Those that it may be restored from, the newest last: of its life since it was last started from the
// beginning.
std::vector<CheckpointId> UsableImages(const DurableState& state, const JobRecord& job);
// nullptr: there is none.
const CheckpointRecord* NewestImage(const DurableState& state, const JobRecord& job);

// Those of them that no restore took.
std::vector<CheckpointId> RefusedImagesOf(const DurableState& state, const JobRecord& job);

// Why a job whose GPU state was lost once is not taken off its GPUs again.
inline constexpr char kGpuStateWasLost[] =
    "what it had on its GPUs was lost the last time it was taken off them";

// Why there is no such job; the same for one that the caller is not to know of.
std::string WhyUnknown(const DurableState& state, JobId job);

// Pure. An event that means nothing in the present state is ignored, so that
// a replay can never fail half-way.
void Apply(DurableState& state, const Event& event);

}  // namespace siding
