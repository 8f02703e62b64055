// What happens to jobs, checkpoints and nodes: the journal holds events, and the controller's state is what
// they come to. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "common/ids.h"
#include "common/units.h"
#include "model/job.h"
#include "model/lifecycle.h"
#include "model/plan.h"
#include "model/totals.h"
#include "model/trends.h"

namespace siding {

struct JobSubmitted {
  JobSpec spec;
  std::string request_key;  // drawn by the client, to ask again without submitting twice; empty: none
};
// A step through the lifecycle table. Fields beside `event` are set where that event needs them.
struct JobMoved {
  JobEvent event = JobEvent::kPlace;
  std::string reason;
  std::string by;  // orders by hand: whose; empty: nobody's, it was decided
  // kPlace; kRestoreFailed, kRestartNeeded, and kReleased and kRequeued after a kill: where its tasks may
  // still live.
  std::vector<NodeId> nodes;
  int incarnation = 0;          // kPlace by a cluster manager: the one that it has started; 0: the next
  bool found = false;           // kPlace: it was there already, and the journal, being a copy, did not know
  int first_rank = 0;           // kPlace by a cluster manager: its agents' number for rank 0
  CheckpointId checkpoint;      // kPlace, kRestored (restore from), kOrderDump, kCommit
  Tier tier = Tier::kShared;    // kOrderDump
  bool keep_running = false;    // kOrderDump, kOrderSave
  bool others_follow = false;   // kOrderDump, if it keeps running: it is checkpointed on schedule
  bool through_ram = false;     // kOrderSuspend: to be dumped into `tier` then; kOrderDump: this is that
  bool for_good = false;        // kOrderKill: cancel, instead of back to the queue
  bool over_limit = false;      // kOrderKill: its time is over, so it has failed
  bool from_beginning = false;  // kOrderKill: then it starts from its beginning, whatever images it has
  bool gpu_state_lost = false;  // what it had on GPUs cannot be put back
  bool without_save = false;    // kRestoreFailed: the program's own save is of no use
  bool interrupted = false;     // kRestoreFailed: it ran or was frozen; nothing was being restored
  JobId request;                // the on-demand job that this is done for; 0: none
  std::vector<NodeId> target;   // kOrderDump by migrate: where to restore
  Duration notice{0};           // kOrderSuspend, kOrderDump: the job is told, and stopped so much later
  Time predicted;               // orders that free nodes: when that should be done
  Bytes bytes;                  // kCommit
  Bytes new_bytes;              // kCommit: of them, what no earlier image has; 0: not known
  Duration waited{0};           // kCommit: standing still, by the rank that waited least
  std::map<int, std::string> digests;  // kReleased, kContinued: by rank, of its image's manifest
  Duration stopped{0};                 // kContinued: for how long the dump stopped the job; 0: not known
  Time started;                        // kStarted, kRestored: first instruction
  int exit_code = 0;                   // kSucceeded, kFailed
};
struct RankExited {
  int rank = 0;
  int exit_code = 0;
};
// Of a cluster manager's job: other tasks than those before stand for it now.
struct TasksChanged {
  std::vector<NodeId> nodes;  // by rank
  int first_rank = 0;         // agents' number for rank 0
};
struct RequestPlanned {
  Plan plan;
};  // job = the request
struct RequestRefused {
  JobSpec spec;
  Plan plan;
  std::string request_key;  // as above
};                          // the job's record is kept, as failed, for `explain`
struct MethodLost {
  Method method = Method::kSuspend;
  std::string why;
  Time back_at;  // when it is tried again, if the job has not been started or restored before; 0: not before
                 // that
};
// What stood in the way of the method may be over.
struct MethodRegained {
  Method method = Method::kSuspend;
};
struct CheckpointChanged {
  CheckpointId checkpoint;
  CheckpointState state = CheckpointState::kDamaged;
  std::string note;
  std::string by;  // who ordered that; empty: nobody
};
// Used: all images of a checkpoint on nodes' own disks have been copied, so it is in shared storage now.
// Alone: it is not any more.
struct CopiesChanged {
  CheckpointId checkpoint;
  NodeCopies copies = NodeCopies::kUsed;
  std::string note;
};
struct NodeCordoned {
  NodeId node;
  bool cordoned = true;
  std::string by;
};
// An operator has said that the node is gone for good, and with it whatever ran there. Not lost: its agent
// has dialled all the same.
struct NodeLost {
  NodeId node;
  bool lost = true;
  std::string by;
};
// The policy was loaded, and says something else than before.
struct PolicyChanged {
  std::vector<std::string> changes;  // see policy/policy_text.h
  std::string by;                    // who asked for it; empty: the file had changed
};
// An agent still has tasks of an earlier life of the job, which the journal, being a copy that was put back,
// did not know.
struct TasksLeft {
  NodeId node;
};
// Of a job that was started again although tasks of it may live on that node, which was lost or away then: it
// has come back, and none do.
struct TasksGone {
  NodeId node;
};
// Something its owner should know.
struct Noted {
  std::string text;
  int rank = -1;   // agents' number of the task that said it; -1: not known
  std::string by;  // whose order it was; empty: nobody's
};

// What jobs that are over add up to, for counters that must never fall.
struct Tally {
  int64_t met = 0, missed = 0, refused = 0;  // deadlines
  int64_t preemptions = 0;
  double lost_node_seconds = 0;
  int64_t damaged_checkpoints = 0;
  int64_t gpu_states_lost = 0;
  int64_t restarts = 0;  // from the beginning, of jobs that had run
};
// Jobs that ended long ago, and that nothing refers to any more, leave the state.
struct JobsForgotten {
  std::vector<JobId> jobs;
  JobId last_job;  // the highest number so far: none is given twice
  Tally tally;     // of all that have ever been forgotten, these included
  Trends trends;   // also
  Totals totals;   // also
};
// As many orders as no job gets after a copy of the journal was made that is put back: once a second, it
// would take days. More are not believed.
inline constexpr int kMostOrdersSkipped = 1000000;
// The journal is a copy that was put back: jobs may have been submitted after it was made.
struct JournalRestored {
  int64_t copied = 0;  // the last event before
  JobId last_job;      // no number up to this one is given again
  int orders = 1000;   // so many numbers of orders and images are not given again, of each job
};

// The time of an on-demand job is over, and by the policy it makes way like a batch job from then on.
struct BecamePreemptible {
  std::string why;
};

// A job that has no nodes, or is leaving them, gets none until that is taken back (not held). Nothing to do
// with JobSpec::hold, which is a time.
struct JobHeld {
  bool held = true;
  bool by_operator = false;  // and not by its user: only operators take it back
  std::string by;
};
// What of its spec was changed after it was submitted.
struct JobUpdated {
  std::optional<int> priority;
  std::optional<Duration> walltime;  // 0: none
  std::string by;
};

// What is said to a job that has nodes, besides that it is to end.
enum class HandVerb : uint8_t { kSuspend, kCheckpoint, kVacate, kMigrate };
std::string ToString(HandVerb verb);
std::optional<HandVerb> ParseHandVerb(const std::string& name);
struct HandOrder {
  HandVerb verb = HandVerb::kVacate;
  Tier tier = Tier::kShared;   // kCheckpoint, kVacate
  std::vector<NodeId> target;  // kMigrate; empty: any others with room
  bool operator==(const HandOrder&) const = default;
};
// The job's work is being saved while it runs on, and the order is carried out when that has ended. Not
// waits: it is not, and why. Whatever else is ordered, and the end of the job's stay on its nodes, takes it
// back as well.
struct OrderWaits {
  bool waits = true;
  HandOrder order;
  Time until;      // later it is not carried out any more
  std::string by;  // not waiting: who has withdrawn it; empty: nobody
  bool by_operator = false;
  std::string why;
};

using EventBody = std::variant<JobSubmitted, JobMoved, RankExited, RequestPlanned, RequestRefused, MethodLost,
                               CheckpointChanged, NodeCordoned, Noted, TasksChanged, JobsForgotten,
                               JournalRestored, NodeLost, TasksGone, MethodRegained, BecamePreemptible,
                               TasksLeft, JobHeld, JobUpdated, OrderWaits, PolicyChanged, CopiesChanged>;
struct Event {
  int64_t seq = 0;  // from 1, each one more than the last
  Time at;
  JobId job;  // 0: it is not about one job
  EventBody body;
};

// "order-dump", "submitted", ...
std::string KindOf(const Event& event);
std::set<std::string> AllEventKinds();
// Whose order it is, or has ended the job; "": nobody's, it was decided or observed.
std::string ByWhom(const Event& event);
// One line for people: "dump to shared storage ordered for request 7".
std::string Describe(const Event& event);

}  // namespace siding
