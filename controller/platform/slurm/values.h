// Slurm's jobs, nodes, partitions and reservations as plain values: what siding asks of them, in siding's
// words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/units.h"

namespace siding {

// Slurm's own number of a job, or of one element of an array.
using SlurmJobId = StrongId<struct SlurmJobTag, uint32_t>;

enum class SlurmJobState : uint8_t {
  kPending,
  kRunning,
  kSuspended,
  kCompleting,  // has ended or is to be requeued; its nodes are not free yet
  kEnded,
};

struct SlurmJob {
  SlurmJobId id;
  SlurmJobId array;         // the first number of its array; 0: of none
  std::string array_tasks;  // "2-3%1": this stands for elements that have no numbers yet
  std::string name;
  uint32_t uid = 0;
  uint32_t gid = 0;
  SlurmJobState state = SlurmJobState::kPending;
  std::string state_word;  // as squeue shows it: "RUNNING", "REQUEUE_HOLD", "TIMEOUT"
  std::string reason;      // why it waits or failed, in one word; "None": no reason
  std::string partition;
  std::string account;
  std::string qos;
  std::string reservation;
  std::vector<NodeId> nodes;         // that it has; empty while it waits
  std::vector<NodeId> wanted_nodes;  // ReqNodeList
  int node_count = 0;                // while it waits: at least so many
  int cpus = 0;                      // on all nodes
  Bytes memory_per_node;             // asked for; 0: not said
  int gpus_per_node = 0;             // most on any node
  uint32_t priority = 0;
  bool held = false;  // waits, and will not start before it is released
  bool requeueable = true;
  int restarts = 0;                    // how often it was requeued
  Time submitted;                      // 0 where Slurm has none, as below
  Time started;                        // also of a suspended one; not what Slurm expects of one that waits
  Time preempted;                      // Slurm has told it that it is to make way
  std::optional<Duration> time_limit;  // none: unlimited, or the partition's
  std::string comment;
  std::string admin_comment;
  bool operator==(const SlurmJob&) const = default;
};

enum class SlurmNodeState : uint8_t { kUnknown, kDown, kIdle, kMixed, kAllocated };

struct SlurmNode {
  NodeId id;
  std::string address;
  SlurmNodeState state = SlurmNodeState::kUnknown;
  bool drained = false;      // takes no new jobs, by an administrator's or Slurm's order
  bool responding = true;    // its slurmd answers
  bool completing = false;   // some job is on its way off it
  bool maintenance = false;  // in a reservation for maintenance
  std::string reason;        // why it is down or drained
  int cpus = 0;
  int allocated_cpus = 0;
  Bytes memory;
  Bytes allocated_memory;
  int gpus = 0;
  int allocated_gpus = 0;
  bool operator==(const SlurmNode&) const = default;
};

struct SlurmPartition {
  std::string name;
  bool up = false;          // jobs of it are started
  bool is_default = false;  // for jobs that name none
  std::vector<NodeId> nodes;
  std::optional<Duration> max_time;  // none: unlimited
  int priority_tier = 0;             // higher goes first, and may preempt lower
  Duration grace{0};                 // between the preemption of a job and its end
  bool operator==(const SlurmPartition&) const = default;
};

struct SlurmReservation {
  std::string name;
  std::vector<NodeId> nodes;
  std::vector<std::string> users;
  Time start;
  Time end;
  bool operator==(const SlurmReservation&) const = default;
};

// The order of lists.
inline bool Before(const SlurmJob& a, const SlurmJob& b) { return a.id < b.id; }
inline bool Before(const SlurmNode& a, const SlurmNode& b) { return a.id < b.id; }
inline bool Before(const SlurmPartition& a, const SlurmPartition& b) { return a.name < b.name; }
inline bool Before(const SlurmReservation& a, const SlurmReservation& b) { return a.name < b.name; }

// What is to change; what is not set stays. An empty list or text removes what was there.
struct SlurmJobChange {
  std::optional<std::vector<NodeId>> wanted_nodes;  // of a job that waits
  std::optional<std::string> reservation;           // of a job that waits
  std::optional<std::string> admin_comment;
  std::optional<std::string> comment;
};

}  // namespace siding
