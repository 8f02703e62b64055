#include "controller/engine/decide/action_plans.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"
#include "controller/wire/spec_limits.h"
#include "controller/wire/wire.h"

namespace siding {
namespace {

// Of a plan that is older it is not looked up whether it still holds.
constexpr int64_t kMostEvents = 10000;

double NodeSeconds(const JobRecord& job, Duration time) { return job.spec.nodes * ToSeconds(time); }

std::optional<Time> StartOf(const PlanningTask& task) {
  const Plan plan = MakePlansAtLeastLate(task).front();
  return plan.nodes.empty() ? std::nullopt : std::optional(plan.predicted_start);
}

bool Overlap(const std::vector<NodeId>& a, const std::vector<NodeId>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](const NodeId& node) { return std::find(b.begin(), b.end(), node) != b.end(); });
}

// As the order leaves it.
PlanningTask Changed(PlanningTask task, JobId moved, const ActionTask::Effect& effect) {
  for (JobView& job : task.alone.jobs) {
    if (job.id != moved) continue;
    if (effect.gone) {
      job.releasing_at = effect.gone;
      job.releasing_for = JobId();
      job.releasing_to_ram = effect.to_ram;
    }
    if (effect.busy) {
      for (Method method : kAllMethods) {
        Time& back_at = job.methods_back_at[method];
        back_at = std::max(back_at, *effect.busy);
      }
    }
  }
  for (NodeView& node : task.alone.nodes) {
    if (effect.closed.contains(node.id)) node.usable = false;
    if (std::find(effect.target.begin(), effect.target.end(), node.id) == effect.target.end()) continue;
    if (!node.free.Covers(effect.per_node)) continue;  // it will wait there
    node.free -= effect.per_node;
    if (task.together) {
      if (const auto room = task.together->find(node.id); room != task.together->end())
        room->second -= effect.per_node;
    }
  }
  return task;
}

}  // namespace

ActionPlan MakeActionPlan(ActionTask task) {
  for (ActionTask::Deadline& deadline : task.deadlines) {
    deadline.change.before = StartOf(*deadline.before);
    deadline.change.after = StartOf(Changed(*deadline.left, task.plan.job, task.effect));
    task.plan.deadlines.push_back(deadline.change);
  }
  return std::move(task.plan);
}

absl::StatusOr<ActionTask> ActionPlans::Task(const Caller& caller, const Action& action) const {
  ActionTask task;
  task.plan.seq = state_.last_seq + 1;
  task.plan.made = clock_.Now();
  task.plan.job = action.job;
  if (action.what == Action::What::kCordon) {
    SIDING_ASSIGN_OR_RETURN(task.effect, PlanCordon(action.node, task.plan));
  } else {
    const JobRecord& job = state_.jobs.at(action.job);
    task.plan.nodes = job.nodes;
    auto planned = action.what == Action::What::kKill ? PlanKill(caller, job, task.plan)
                                                      : PlanHand(caller, job, action.order, task.plan);
    if (!planned.ok()) return planned.status();
    task.effect = *std::move(planned);
    task.effect.per_node = job.spec.per_node;
  }
  AddDeadlines(task);
  return task;
}

ActionPlans::Times ActionPlans::TimesOf(const JobRecord& job, Tier tier) const {
  Times times;
  for (int rank : cluster_.LiveRanks(job)) {
    const auto node = state_.observed_nodes.find(job.nodes[rank]);
    if (node == state_.observed_nodes.end()) continue;
    const v1::Heartbeat& heartbeat = node->second.heartbeat;
    const TierRates image = FromProto(tier == Tier::kLocal ? heartbeat.local() : heartbeat.shared());
    const TierRates gpu = FromProto(heartbeat.gpu());
    const v1::TaskReport& report = cluster_.Seen(job, rank).report;
    const Bytes on_gpus{report.gpu_memory()}, all{report.memory() + report.gpu_memory()};
    times.known &= image.dump.known() && image.restore.known() && all > Bytes{0};
    if (image.dump.known()) times.dump = std::max(times.dump, image.dump.For(all));
    if (image.restore.known()) times.restore = std::max(times.restore, image.restore.For(all));
    if (on_gpus == Bytes{0}) continue;
    if (gpu.dump.known()) times.drain = std::max(times.drain, gpu.dump.For(on_gpus));
    if (gpu.restore.known()) times.refill = std::max(times.refill, gpu.restore.For(on_gpus));
  }
  return times;
}

absl::StatusOr<ActionPlans::Effect> ActionPlans::PlanHand(const Caller& caller, const JobRecord& job,
                                                          const HandOrder& order, ActionPlan& plan) const {
  const bool suspends = order.verb == HandVerb::kSuspend;
  if (suspends) SIDING_RETURN_IF_ERROR(verbs_.MayFreeze(caller, job));
  if (!suspends) SIDING_RETURN_IF_ERROR(quota_.MakesRoomFor(caller, job).status());
  SIDING_ASSIGN_OR_RETURN(const JobMoved move, verbs_.Begin(job, order));
  const Time now = clock_.Now();
  if (IsSavedRunning(job)) plan.begins = std::max(now, job.current.predicted);
  const Time begins = std::max(now, plan.begins) + move.notice;
  Effect effect;
  if (suspends) {
    const Times times = TimesOf(job, Tier::kShared);
    plan.method = Method::kSuspend;
    plan.done = begins + times.drain;
    plan.loss_node_seconds = NodeSeconds(job, times.drain + times.refill);
    if (!KeepsItsNodes(job) && OwnershipOf(job.spec).frozen_gives_way) effect.gone = plan.done;
    effect.to_ram = true;
    return effect;
  }
  const Times times = TimesOf(job, move.tier);
  const Duration stopped = times.drain + times.dump, back = times.restore + times.refill;
  plan.method = Method::kCheckpoint;
  plan.tier = move.tier;
  if (times.known) plan.bytes = cluster_.ImageOf(job);
  plan.target = effect.target = move.target;
  const Time written = begins + stopped;
  if (move.keep_running) {
    effect.busy = written;
    if (times.known) plan.loss_node_seconds = NodeSeconds(job, stopped + times.refill);
  } else {
    effect.gone = written;
    if (times.known) plan.loss_node_seconds = NodeSeconds(job, stopped + back);
  }
  if (times.known) plan.done = order.verb == HandVerb::kMigrate ? written + back : written;
  return effect;
}

absl::StatusOr<ActionPlans::Effect> ActionPlans::PlanKill(const Caller& caller, const JobRecord& job,
                                                          ActionPlan& plan) const {
  SIDING_ASSIGN_OR_RETURN(const auto move, verbs_.End(job, caller.user));
  Effect effect;
  plan.method = Method::kKill;
  plan.done = clock_.Now() + (HoldsNodes(job.state) ? job.spec.kill_grace : Duration(0));
  plan.loss_node_seconds = NodeSeconds(job, RanFor(job, clock_.Now()));
  if (HoldsNodes(job.state) && move) effect.gone = plan.done;
  if (WaitsForItsNodes(job)) effect.withdrawn = job.id;
  return effect;
}

absl::StatusOr<ActionPlans::Effect> ActionPlans::PlanCordon(const NodeId& node, ActionPlan& plan) const {
  SIDING_RETURN_IF_ERROR(verbs_.IsKnown(node));
  plan.nodes = {node};
  for (const auto& [id, job] : state_.unfinished) {
    if (HoldsNodes(job->state) && Overlap(job->nodes, plan.nodes)) plan.stay.push_back(id);
  }
  Effect effect;
  effect.closed = {node};
  return effect;
}

void ActionPlans::AddDeadlines(ActionTask& task) const {
  const JobId withdrawn = task.effect.withdrawn;
  std::vector<const JobRecord*> requests;
  for (const auto& [id, job] : state_.index.requests()) {
    if (WaitsForItsNodes(*job) && !IsQueued(*job) && id != withdrawn) requests.push_back(job);
  }
  std::sort(requests.begin(), requests.end(), [](const JobRecord* a, const JobRecord* b) {
    return std::tie(a->spec.start_by, a->id) < std::tie(b->spec.start_by, b->id);
  });
  for (; requests.size() > kMostDeadlines; requests.pop_back())
    task.plan.left_out.push_back(requests.back()->id);
  for (const JobRecord* request : requests) {
    ActionTask::Deadline deadline;
    deadline.change.request = request->id;
    deadline.change.start_by = request->spec.start_by;
    deadline.before = planning_.TaskFor(request->id, request->spec);
    deadline.left =
        withdrawn == JobId() ? deadline.before : planning_.TaskFor(request->id, request->spec, withdrawn);
    task.deadlines.push_back(std::move(deadline));
  }
}

absl::Status ActionPlans::Unchanged(int64_t seq, const ActionBasis& basis) const {
  if (seq == 0) return absl::OkStatus();
  if (seq < 0 || seq > state_.last_seq + 1) {
    return BadField("if_unchanged",
                    absl::StrCat("the sequence of a plan, which are up to ", state_.last_seq + 1));
  }
  if (state_.last_seq - seq > kMostEvents) {
    return absl::FailedPreconditionError(
        absl::StrCat("the plan of sequence ", seq, " is ", state_.last_seq - seq,
                     " events old, and nothing was done: ask for another one (--dry-run)"));
  }
  for (const Event& event : recorder_.events().After(seq - 1, kMostEvents, Duration(0))) {
    const std::string what = WhatChanged(event, basis);
    if (what.empty()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("what was planned does not hold any more, and nothing was done: ", what, " (event ",
                     event.seq, "); ask for another plan (--dry-run)"));
  }
  return absl::OkStatus();
}

// What others do is told to nobody. Empty: it does not matter.
std::string ActionPlans::WhatChanged(const Event& event, const ActionBasis& basis) const {
  if (std::holds_alternative<Noted>(event.body) || std::holds_alternative<JobsForgotten>(event.body))
    return "";
  if (event.job == JobId()) return Describe(event);
  if (event.job == basis.job) return absl::StrCat("job ", event.job.value(), ": ", Describe(event));
  if (std::holds_alternative<RequestPlanned>(event.body))
    return "the plans of requests with deadlines have changed";
  const auto* move = std::get_if<JobMoved>(&event.body);
  if (move == nullptr) return "";
  const auto job = state_.jobs.find(event.job);
  const bool is_there = job != state_.jobs.end() && Overlap(job->second.nodes, basis.nodes);
  if (is_there || Overlap(move->nodes, basis.nodes) || (basis.any_node && move->event == JobEvent::kPlace))
    return "what runs on these nodes has changed";
  return "";
}

}  // namespace siding
