// A cluster manager with a queue of its own, in siding's words: what is observed of its jobs and nodes, and
// what is desired of it. Plain values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/units.h"
#include "model/job.h"

namespace siding {

// What pods' jobs have as their cluster manager.
inline constexpr char kKubernetes[] = "kubernetes";

enum class ManagedPhase : uint8_t {
  kWaiting,
  kRunning,  // holds its nodes, suspended ones included
  kEnding,   // its processes are being ended; its nodes will be free in a moment
  kOver,
};

// Of all jobs that are under it only so many may be taken off their nodes.
struct Allowance {
  std::string name;  // for people: "the disruption budget ns1/web"
  int takes = 1;     // of it, were this job taken
  int left = 0;      // in all
  bool operator==(const Allowance&) const = default;
};

// A job in its queue. The manager's number is siding's, too.
struct ManagedJob {
  JobId id;
  ManagedPhase phase = ManagedPhase::kWaiting;
  // Name, user, nodes, its share of each node, labels, the manager's name; of a job with a deadline also
  // kind, start_by and hold. How it may be preempted is not here: its tasks' agents say that.
  JobSpec spec;
  bool may_start = true;          // while it waits: nobody holds it, and what it waits for has happened
  bool suspended = false;         // has nodes, and is suspended there; not by siding
  std::vector<NodeId> nodes;      // that it has, or had at its end
  int starts = 0;                 // how often it has been started, this time included
  Time submitted;                 // or requeued
  std::optional<Time> started;    // the last time
  std::optional<Time> ends_by;    // its nodes are free then at the latest, by its time limit
  std::optional<Time> leaves_by;  // the manager makes it make way by itself: it is ended then
  bool can_be_pinned = true;      // the manager can be told on which nodes it is to start
  bool succeeded = false;         // over: and all was well
  std::vector<Allowance> allowances;
  std::string kept_by;  // why it must not be taken off its nodes now; "": it may
  std::string state;    // the manager's word, for people
};

struct ManagedNode {
  NodeId id;
  Resources capacity;
  bool usable = true;  // it starts jobs there
  std::string why;     // not usable: the manager's words
  // False: the manager has been started a moment ago, and does not know yet whether the node is usable.
  bool is_known = true;
  bool operator==(const ManagedNode&) const = default;
};

// Between two polls. At the first one everything is new.
struct ManagerChanges {
  bool answers = true;  // false: it does not, and nothing is taken to have changed
  std::vector<ManagedJob> jobs;
  std::vector<JobId> gone_jobs;  // that it no longer knows
  std::vector<ManagedNode> nodes;
  std::vector<NodeId> gone_nodes;
};

// All that siding wants of the manager at a moment. What it was told before and is not in here any more, it
// is to take back.
struct DesiredState {
  // Nodes that are given to nobody but this job.
  struct Kept {
    std::vector<NodeId> nodes;
    std::string user;
    Time until;  // were siding to die, they are to be free again then
    bool operator==(const Kept&) const = default;
  };
  struct Job {
    bool suspended = false;     // its slots are free for others
    std::vector<NodeId> nodes;  // where it is to start; empty: anywhere
    std::string why;            // for people: "makes way for job 42"; empty: nothing to say
    // It comes back: where the manager starts only so many of a group at a time, before those of the group
    // that have not been started yet.
    bool before_siblings = false;
    bool operator==(const Job&) const = default;
  };
  // Of a job that goes on, by whatever the manager makes in the place of what ended (a pod, by its owner):
  // how that is to start.
  struct Next {
    enum class How : uint8_t {
      kNotYet,  // what it holds now, or what is left of it, is looked at first
      kBeginning,
      kImage,
    };
    std::map<std::string, std::string> labels;  // of the job: what comes in its place is found by them
    int starts = 0;                             // so far
    How how = How::kNotYet;
    // Of the image, whose every rank is there.
    CheckpointId checkpoint;
    Tier tier = Tier::kShared;
    int incarnation = 0;  // that was dumped
    std::string digest;   // "": not known
    bool operator==(const Next&) const = default;
  };
  std::map<JobId, Kept> kept;
  std::map<JobId, Job> jobs;
  std::map<JobId, Next> next;  // where the platform asks for it (Platform::continues_jobs)
  bool operator==(const DesiredState&) const = default;
};

}  // namespace siding
