// What the planner answers: which jobs leave their nodes, how, and why; or why not and when it would work.
#pragma once

#include <optional>
#include <string>
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

// A job that holds nodes and was left alone.
struct PlanKeep {
  JobId job;
  std::string reason;
};

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
  std::vector<JobId>
      awaited;           // who may leave, or will have ended, only later: if one goes sooner, so does all
  Time predicted_start;  // when the last of `nodes` is predicted free
  double loss_node_seconds = 0;
  double cost_node_seconds = 0;      // what was minimised: the loss as the policy weighs it, and delays
  std::vector<PlanWithout> without;  // where it was asked for (planner/plan_without.h); never recorded
  // When not feasible:
  std::string refusal;           // what is missing
  std::optional<Time> earliest;  // earliest start_by that would have been accepted; none: never
};

}  // namespace siding
