// What the planner answers: which jobs leave their nodes, how, and why; or why not and when it would work.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "common/ids.h"
#include "common/units.h"
#include "model/job.h"

namespace siding {

// In a job that is being submitted, as its start_by: the earliest that can be kept.
inline constexpr Time kEarliest = Time::max();

struct PlanStep {
  JobId job;
  Method method = Method::kKill;
  Tier tier = Tier::kShared;   // kCheckpoint only
  std::vector<NodeId> nodes;   // that the job leaves
  std::vector<NodeId> target;  // kCheckpoint: continues there at once; empty: waits until nodes are free
  Time begin;                  // not earlier than this
  bool through_ram =
      false;           // kCheckpoint: frozen first, which frees the nodes; the image is written behind it
  bool early = false;  // a checkpoint in advance, after which the job runs on: it leaves by a later step
  Time predicted_release;
  Bytes bytes;                   // written, for a checkpoint
  double loss_node_seconds = 0;  // see planner/options.h for the formula
  std::string reason;            // one sentence: why this job, why this way
};

// Why a job is left alone.
enum class KeepRule : uint8_t {
  kUnsaid,          // only `reason` says it: recorded by a version that knew no rules
  kOnDemand,        // it is a deadline job itself
  kLeaving,         // it is leaving its nodes already
  kNotPreemptible,  // its user allows no method
  kCannotLeave,     // those that it allows do not work for it
  kProtected,       // its class of the policy allows none
  kMaxPreemptions,  // it has made way as often as it may
  kMinRuntime,      // it has not run for long enough
  kCooldown,        // it made way not long ago
  kMethodPaused,    // what could be done in time has failed, and is tried again later
  kNoRoom,          // its image has none
  kNotMeasured,     // nobody knows how long it would take to leave
  kElsewhere,       // it is on no node that the request could use
  kTooSlow,         // it could not be gone in time
  kAwaited,         // it will have ended by itself
  kNotNeeded,       // others lose less, or are enough
  kRefused,         // the request is refused, so nothing is touched
  kBeingSaved,      // a checkpoint of it is being made, after which it runs on
};
inline constexpr int kKeepRuleCount = 18;
std::string ToString(KeepRule rule);  // "min-runtime"
std::optional<KeepRule> ParseKeepRule(const std::string& name);

// A job that holds nodes and was left alone.
struct PlanKeep {
  JobId job;
  std::string reason;  // made of the rest (planner/explain.h), for people
  KeepRule rule = KeepRule::kUnsaid;
  std::string policy_key;        // of the policy, that decided; empty: none did
  std::string job_class;         // in which the key stands; empty: the key for all jobs
  Time from;                     // until when it is left alone, or by when it will have left; 0: not said
  std::string way;               // in which it would leave: the fastest, or the cheapest in time; empty: none
  Duration release{0};           // how long that takes
  double loss_node_seconds = 0;  // and what it loses
  int nodes = 0;                 // that it holds
  std::string note;              // what else is to be said of it
};

// How many jobs are left alone for the same reason.
struct KeptGroup {
  KeepRule rule = KeepRule::kUnsaid;
  std::string policy_key, job_class;
  int jobs = 0;
};
// What those of one group have in common.
inline std::tuple<KeepRule, std::string, std::string> GroupOf(const PlanKeep& keep) {
  return {keep.rule, keep.policy_key, keep.job_class};
}
// The largest first.
std::vector<KeptGroup> GroupKept(const std::vector<PlanKeep>& kept);

// What would be done if one of the jobs that make way had to stay.
struct PlanWithout {
  JobId spared;
  bool feasible = false;         // false: without it the request cannot be met
  std::vector<JobId> jobs;       // that make way then, by their ids
  double loss_node_seconds = 0;  // of all of them
  double cost_node_seconds = 0;  // the loss as the policy weighs it, by which plans are compared
  bool next_best = false;        // of all jobs that make way, sparing this one costs least
};

struct Plan {
  JobId request;
  bool feasible = false;
  bool queued = false;          // the deadline cannot be met; waits its turn, and no job makes way
  bool exact = true;            // nothing better exists within the discretisation (planner/planner.h)
  std::vector<PlanStep> steps;  // in the order in which to act
  std::vector<NodeId> nodes;    // that the request will get: as many as it asked for
  std::vector<PlanKeep> kept;
  std::vector<KeptGroup> kept_groups;  // of all that are left alone; empty: these are all in `kept`
  std::vector<JobId>
      awaited;           // who may leave, or will have ended, only later: if one goes sooner, so does all
  Time predicted_start;  // when the last of `nodes` is predicted free
  double loss_node_seconds = 0;
  double cost_node_seconds = 0;      // what was minimised: the loss as the policy weighs it, and delays
  std::vector<PlanWithout> without;  // where it was asked for (planner/plan_without.h); never recorded
  Time decided;  // when it was adopted, or refused: of the event that says so; 0: it is a dry run
  // When not feasible:
  std::string refusal;           // what is missing
  std::optional<Time> earliest;  // earliest start_by that would have been accepted; none: never
};

}  // namespace siding
