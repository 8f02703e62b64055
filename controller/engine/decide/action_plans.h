// What an order by hand would do, before it is given: to the job, and to the deadlines of the requests that
// wait. Nothing is recorded, and nobody is told.
//
// Used under the engine's lock, but for MakeActionPlan().
#pragma once

#include <map>
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
inline constexpr size_t kMostDeadlines = 8;

// The plan without its deadlines, and what they are made of: the cluster as it is, and as the order leaves
// it.
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
  struct Deadline {
    DeadlineChange change;
    SharedTask before, left;  // without the request that the order ends, if it ends one
  };
  ActionPlan plan;
  Effect effect;
  std::vector<Deadline> deadlines;
};
// Pure.
ActionPlan MakeActionPlan(ActionTask task);

// What an order rests on that was planned before.
struct ActionBasis {
  JobId job;
  std::vector<NodeId> nodes;  // where it goes on, or that are cordoned
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
  absl::StatusOr<ActionTask> Task(const Caller& caller, const Action& action) const;
  // kFailedPrecondition, with what has happened: something since the plan of that sequence on which it rests.
  // 0: the order is given whatever has happened.
  absl::Status Unchanged(int64_t seq, const ActionBasis& basis) const;

 private:
  using Effect = ActionTask::Effect;
  struct Times {
    Duration dump{0}, restore{0}, drain{0}, refill{0};
    bool known = true;  // of images: what they hold, and how fast that is written and read
  };

  Times TimesOf(const JobRecord& job, Tier tier) const;
  absl::StatusOr<Effect> PlanHand(const Caller& caller, const JobRecord& job, const HandOrder& order,
                                  ActionPlan& plan) const;
  absl::StatusOr<Effect> PlanKill(const Caller& caller, const JobRecord& job, ActionPlan& plan) const;
  absl::StatusOr<Effect> PlanCordon(const NodeId& node, ActionPlan& plan) const;
  void AddDeadlines(ActionTask& task) const;
  std::string WhatChanged(const Event& event, const ActionBasis& basis) const;

  const ClusterState& state_;
  const Clock& clock_;
  const ClusterView& cluster_;
  Recorder& recorder_;
  const Verbs& verbs_;
  const Planning& planning_;
  const ImageQuota& quota_;
};

}  // namespace siding
