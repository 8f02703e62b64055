// Slurm's jobs, nodes, partitions and reservations as plain values: what siding asks of them, in siding's
// words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/units.h"

namespace siding::slurm {

// Slurm's own number of a job, or of one element of an array.
using JobNumber = StrongId<struct JobNumberTag, uint32_t>;

enum class JobPhase {
  kPending,    // waits, or comes back into the queue
  kStarting,   // has nodes that are being made ready
  kRunning,    // also while it is told of its preemption
  kSuspended,  // holds memory and GPUs
  kEnding,     // its processes are being ended; its nodes are not free yet
  kEnded,
  kUnknown,  // a state that this version does not know
};

struct QueueJob {
  JobNumber id;
  JobNumber array;          // the first number of its array; 0: it is no array's
  std::string array_tasks;  // "2-3%1": this stands for elements that have no numbers of their own yet
  std::optional<uint32_t> array_task;  // which element of its array it is; not of one that stands for several
  std::string name;
  uint32_t uid = 0;
  uint32_t gid = 0;
  JobPhase phase = JobPhase::kUnknown;
  std::string state;   // Slurm's word for it: "RUNNING", "REQUEUE_HOLD", "TIMEOUT"
  std::string reason;  // why it waits or failed, in one word; empty: no reason
  std::string partition, qos, account, reservation;
  int nodes = 0;                // while it waits: at least so many
  int cpus = 0;                 // on all nodes
  Bytes memory_per_node;        // asked for; 0: not said
  int gpus_per_node = 0;        // most on any node
  std::vector<NodeId> on;       // empty while it has none
  std::vector<NodeId> only_on;  // asked for by name
  std::vector<NodeId> not_on;   // excluded by name
  std::string constraint;       // features that its nodes are to have, as the user wrote it
  bool whole_nodes = false;     // shares its nodes with nobody, or with jobs of its user only
  uint32_t priority = 0;
  int64_t nice = 0;   // so much is taken off its priority, or added where it is negative
  bool held = false;  // waits, and will not start before it is released
  bool requeueable = false;
  int restarts = 0;  // how often it was requeued
  std::optional<Time> submitted;
  std::optional<Time> eligible;   // may start from then on; none: not yet known (a hold, a dependency)
  std::optional<Time> started;    // not what Slurm expects of one that waits
  std::optional<Time> ends;       // by its limit, while it runs
  std::optional<Time> preempted;  // when Slurm told it to make way
  std::optional<Duration> limit;  // nothing: not limited, or not known
  std::string comment;
  std::string admin_comment;
  bool operator==(const QueueJob&) const = default;
};

struct QueueNode {
  NodeId id;
  std::string address;
  std::string state;     // Slurm's word for it: "idle", "mixed", "allocated", "down", "unknown"
  bool up = false;       // runs jobs; not so while it is down or does not answer
  bool drained = false;  // takes no new ones
  int cpus = 0;
  int cpus_used = 0;
  Bytes memory;
  Bytes memory_used;
  int gpus = 0;
  int gpus_used = 0;
  std::vector<std::string> features;
  std::string reason;  // why it is down or drained
  bool operator==(const QueueNode&) const = default;
};

struct Partition {
  std::string name;
  bool up = false;          // jobs of it are started
  bool is_default = false;  // for jobs that name none
  std::vector<NodeId> nodes;
  std::optional<Duration> max_time;  // none: unlimited
  int priority_tier = 0;             // higher goes first, and may preempt lower
  Duration grace{0};                 // between the preemption of a job and its end
  bool operator==(const Partition&) const = default;
};

struct Reservation {
  std::string name;
  std::vector<NodeId> nodes;
  std::vector<std::string> users;
  Time start;
  Time end;
  bool operator==(const Reservation&) const = default;
};

// The order of lists.
inline bool Before(const QueueJob& a, const QueueJob& b) { return a.id < b.id; }
inline bool Before(const QueueNode& a, const QueueNode& b) { return a.id < b.id; }
inline bool Before(const Partition& a, const Partition& b) { return a.name < b.name; }
inline bool Before(const Reservation& a, const Reservation& b) { return a.name < b.name; }

// What is to change; what is not set stays. An empty list or text removes what was there.
struct JobChange {
  std::optional<std::vector<NodeId>> only_on;  // of a job that waits
  std::optional<std::string> reservation;      // of a job that waits
  std::optional<std::string> admin_comment;
  std::optional<std::string> comment;
  // Not of one whose priority is 0: with priority/basic it would be released, or resumed amiss.
  std::optional<int64_t> nice;
};

}  // namespace siding::slurm
