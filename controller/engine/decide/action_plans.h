// What an order by hand would do, before it is given: to the job, and to the deadlines of the requests that
// wait. Nothing is recorded, and nobody is told.
//
// Used under the engine's lock, but for MakeDeadline().
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/engine/decide/image_quota.h"
#include "controller/engine/decide/planning.h"
#include "controller/engine/decide/verbs.h"
#include "controller/engine/state/context.h"
#include "model/action_plan.h"

namespace siding {

// Of the requests that wait, those with the next deadlines are planned: each takes two plans.
inline constexpr size_t kMostDeadlines = 4;

// The plan without its deadlines, and the requests whose deadlines they are.
struct ActionTask {
  // What the order changes there.
  struct Effect {
    std::optional<Time> gone;    // when the job has left its nodes
    bool to_ram = false;         // frozen
    std::optional<Time> busy;    // until then it can leave in no other way
    std::vector<NodeId> target;  // nodes of which it takes so much each
    Resources per_node;
    std::set<NodeId> closed;  // nodes that take nothing new
    JobId withdrawn;          // the request that waits no more
  };
  ActionPlan plan;
  Effect effect;
  std::vector<JobId> requests;  // the next ones first
};
// A deadline without its starts, and what they are made of.
struct DeadlineTask {
  DeadlineChange change;
  SharedTask before, left;  // without the request that the order ends, if it ends one
};
// As the cluster is, and as the order leaves it. Pure.
DeadlineChange MakeDeadline(const ActionTask& task, DeadlineTask deadline);

// What an order rests on that was planned before.
struct ActionBasis {
  JobId job;
  std::vector<NodeId> nodes;  // that the job is on, and where it goes on; or that are cordoned
  bool any_node = false;      // it goes on wherever there is room
};

class ActionPlans {
 public:
  ActionPlans(const Context& c, const Verbs& verbs, const Planning& planning, const ImageQuota& quota)
      : state_(c.state),
        clock_(c.clock),
        cluster_(c.cluster),
        recorder_(c.recorder),
        verbs_(verbs),
        planning_(planning),
        quota_(quota) {}

  // Of a job, or a node, that the caller may act on. The error that the order would get.
  // Of deadlines that the caller may see.
  absl::StatusOr<ActionTask> Task(const Caller& caller, const Action& action);
  // Of one of the task's requests; none: it does not wait any more.
  std::optional<DeadlineTask> DeadlineOf(const ActionTask& task, JobId request) const;
  // Plans that were made before rest on another policy.
  void PolicyChanged() { outdated_ = planned_; }
  // kFailedPrecondition, with what has happened: something since the plan of that sequence on which it rests.
  // 0: the order is given whatever has happened.
  absl::Status Unchanged(int64_t seq, const ActionBasis& basis) const;

 private:
  using Effect = ActionTask::Effect;
  // The longest of any task.
  struct Times {
    Duration restore{0}, drain{0}, refill{0};
    bool image_known = true;  // what it holds, and how fast that is written and read
    bool gpus_known = true;   // how fast what is on them leaves them, and comes back
  };

  Times TimesOf(const JobRecord& job, Tier tier) const;
  absl::StatusOr<Effect> PlanHand(const Caller& caller, const JobRecord& job, const HandOrder& order,
                                  ActionPlan& plan) const;
  absl::StatusOr<Effect> PlanKill(const Caller& caller, const JobRecord& job, ActionPlan& plan) const;
  absl::StatusOr<Effect> PlanCordon(const NodeId& node, ActionPlan& plan) const;
  void AddRequests(const Caller& caller, ActionTask& task) const;
  std::string WhatChanged(const Event& event, const ActionBasis& basis) const;

  const ClusterState& state_;
  const Clock& clock_;
  const ClusterView& cluster_;
  Recorder& recorder_;
  const Verbs& verbs_;
  const Planning& planning_;
  const ImageQuota& quota_;
  // Of the newest plan that was made, and of the newest that is older than the policy.
  int64_t planned_ = 0, outdated_ = 0;
};

}  // namespace siding
