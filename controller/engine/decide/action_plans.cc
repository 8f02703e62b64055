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

// A checkpoint that nobody has asked for was made, after which its job ran on.
bool IsOnSchedule(const Event& event) {
  const auto* const move = std::get_if<JobMoved>(&event.body);
  const auto* const changed = std::get_if<CheckpointChanged>(&event.body);
  const bool by_hand = (move != nullptr && !move->by.empty()) || (changed != nullptr && !changed->by.empty());
  return OnlySaves(event) && !by_hand;
}

// Nodes are taken, or are being left.
bool MovesNodes(const JobMoved& move) {
  return move.event != JobEvent::kStarted && move.event != JobEvent::kRestored;
}

// As the order leaves it.
PlanningTask Changed(PlanningTask task, JobId moved, const ActionTask::Effect& effect) {
  for (JobView& job : task.alone.jobs) {
    // What leaves for a request that is over leaves for whoever comes.
    if (effect.withdrawn != JobId() && job.releasing_for == effect.withdrawn) job.releasing_for = JobId();
    if (job.id != moved) continue;
    if (effect.gone) {
      job.releasing_at = effect.gone;
      job.releasing_for = JobId();
      job.releasing_to_ram = effect.to_ram;
    }
    if (effect.busy) job.saved_by = std::max(job.saved_by.value_or(*effect.busy), *effect.busy);
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

DeadlineChange MakeDeadline(const ActionTask& task, DeadlineTask deadline) {
  deadline.change.before = StartOf(*deadline.before);
  deadline.change.after = StartOf(Changed(*deadline.left, task.plan.job, task.effect));
  return deadline.change;
}

absl::StatusOr<ActionTask> ActionPlans::Task(const Caller& caller, const Action& action) {
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
  AddRequests(caller, task);
  // What becomes of them rests on when the job has left.
  if (action.what != Action::What::kCordon && task.plan.done == Time{}) {
    task.plan.left_out.insert(task.plan.left_out.begin(), task.requests.begin(), task.requests.end());
    task.requests.clear();
  }
  planned_ = task.plan.seq;
  return task;
}

ActionPlans::Times ActionPlans::TimesOf(const JobRecord& job, Tier tier) const {
  Times times;
  times.image_known = times.gpus_known = cluster_.AreHeard(job);
  for (int rank : cluster_.LiveRanks(job)) {
    const auto node = state_.observed_nodes.find(job.nodes[rank]);
    if (node == state_.observed_nodes.end()) continue;
    const v1::Heartbeat& heartbeat = node->second.heartbeat;
    const TierRates image = FromProto(tier == Tier::kLocal ? heartbeat.local() : heartbeat.shared());
    const TierRates gpu = FromProto(heartbeat.gpu());
    const v1::TaskReport& report = cluster_.Seen(job, rank).report;
    const Bytes on_gpus{report.gpu_memory()}, all{report.memory() + report.gpu_memory()};
    times.image_known &= image.dump.known() && image.restore.known() && all > Bytes{0};
    if (image.restore.known()) times.restore = std::max(times.restore, image.restore.For(all));
    if (on_gpus == Bytes{0}) continue;
    times.gpus_known &= gpu.dump.known() && gpu.restore.known();
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
  const bool waits = IsSavedRunning(job);
  // Of a save that should be over, or whose rate is not known, nobody knows when it ends.
  if (waits && job.current.predicted > now) plan.begins = job.current.predicted;
  const Time begins = std::max(now, plan.begins);
  const Times times = TimesOf(job, move.tier);
  const bool known = times.gpus_known && (suspends || times.image_known) && !(waits && plan.begins == Time{});
  plan.method = suspends ? Method::kSuspend : Method::kCheckpoint;
  Effect effect;
  effect.to_ram = suspends;
  if (suspends) {
    if (!known) return effect;
    plan.done = begins + move.notice + times.drain;
    plan.loss_node_seconds = NodeSeconds(job, times.drain + times.refill);
    if (OwnershipOf(job.spec).frozen_gives_way) effect.gone = plan.done;
    return effect;
  }
  plan.tier = move.tier;
  plan.target = effect.target = move.target;
  if (!known) return effect;
  plan.bytes = cluster_.ImageOf(job);
  // As the order itself predicts it, but that it may begin later.
  const Time written = begins + (move.predicted - now);
  const Duration writing = move.predicted - now - move.notice, back = times.restore + times.refill;
  // One that is to run on does so while most of that is done, as far as its last image shows.
  const auto learned = move.keep_running ? Expected(job.checkpoint_costs, move.tier) : std::nullopt;
  const Duration stopped = learned ? std::min(learned->stop, writing) : writing;
  (move.keep_running ? effect.busy : effect.gone) = written;
  plan.loss_node_seconds = NodeSeconds(job, stopped + (move.keep_running ? times.refill : back));
  plan.done = order.verb == HandVerb::kMigrate ? written + back : written;
  return effect;
}

absl::StatusOr<ActionPlans::Effect> ActionPlans::PlanKill(const Caller& caller, const JobRecord& job,
                                                          ActionPlan& plan) const {
  SIDING_ASSIGN_OR_RETURN(const auto move, verbs_.End(job, caller.user));
  Effect effect;
  plan.method = Method::kKill;
  plan.loss_node_seconds = NodeSeconds(job, RanFor(job, clock_.Now()));
  if (WaitsForItsNodes(job)) effect.withdrawn = job.id;
  if (!HoldsNodes(job.state)) {
    plan.done = clock_.Now();
  } else if (move &&
             cluster_.AreHeard(job)) {  // else nobody knows: it is being ended, or nobody is there to end it
    plan.done = clock_.Now() + job.spec.kill_grace;
    effect.gone = plan.done;
  }
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

void ActionPlans::AddRequests(const Caller& caller, ActionTask& task) const {
  std::vector<const JobRecord*> requests;
  for (const auto& [id, job] : state_.index.requests()) {
    const bool waits = WaitsForItsNodes(*job) && !IsQueued(*job) && id != task.effect.withdrawn;
    if (waits && verbs_.MaySee(caller, *job)) requests.push_back(job);
  }
  std::sort(requests.begin(), requests.end(), [](const JobRecord* a, const JobRecord* b) {
    return std::tie(a->spec.start_by, a->id) < std::tie(b->spec.start_by, b->id);
  });
  for (const JobRecord* request : requests)
    (task.requests.size() < kMostDeadlines ? task.requests : task.plan.left_out).push_back(request->id);
}

std::optional<DeadlineTask> ActionPlans::DeadlineOf(const ActionTask& task, JobId request) const {
  const auto job = state_.jobs.find(request);
  if (job == state_.jobs.end() || !WaitsForItsNodes(job->second)) return std::nullopt;
  const JobSpec& spec = job->second.spec;
  const JobId withdrawn = task.effect.withdrawn;
  DeadlineTask deadline;
  deadline.change.request = request;
  deadline.change.start_by = spec.start_by;
  deadline.before = planning_.TaskFor(request, spec);
  deadline.left = withdrawn == JobId() ? deadline.before : planning_.TaskFor(request, spec, withdrawn);
  return deadline;
}

absl::Status ActionPlans::Unchanged(int64_t seq, const ActionBasis& basis) const {
  if (seq == 0) return absl::OkStatus();
  if (seq < 0 || seq > state_.last_seq + 1) {
    return BadField("if_unchanged",
                    absl::StrCat("the sequence of a plan, which are up to ", state_.last_seq + 1));
  }
  const int64_t since = state_.last_seq + 1 - seq;
  std::string what;
  const bool is_recent =
      since <= kMostEvents && recorder_.events().VisitAfter(seq - 1, [&](const Event& event) {
        what = WhatChanged(event, basis);
        if (!what.empty()) absl::StrAppend(&what, " (event ", event.seq, ")");
        return what.empty();
      });
  if (!is_recent) {
    return absl::FailedPreconditionError(
        absl::StrCat("the plan of sequence ", seq, " is ", since,
                     " events old, and nothing was done: ask for another one (--dry-run)"));
  }
  if (what.empty() && seq <= outdated_) what = "the policy has been loaded again";
  if (what.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("what was planned does not hold any more, and nothing was done: ", what,
                   "; ask for another plan (--dry-run)"));
}

// What others do is told to nobody. Empty: it does not matter.
std::string ActionPlans::WhatChanged(const Event& event, const ActionBasis& basis) const {
  if (std::holds_alternative<Noted>(event.body) || std::holds_alternative<JobsForgotten>(event.body))
    return "";
  if (event.job == JobId()) return Describe(event);
  if (event.job == basis.job && IsOnSchedule(event)) return "";
  if (event.job == basis.job) return absl::StrCat("job ", event.job.value(), ": ", Describe(event));
  constexpr char kRequests[] = "the plans of requests with deadlines have changed";
  if (std::holds_alternative<RequestPlanned>(event.body)) return kRequests;
  const auto* move = std::get_if<JobMoved>(&event.body);
  const bool is_updated = std::holds_alternative<JobUpdated>(event.body);
  if (!is_updated && (move == nullptr || OnlySaves(event))) return "";
  const auto job = state_.jobs.find(event.job);
  if (job == state_.jobs.end() || IsRequest(job->second)) return kRequests;
  const bool is_there =
      Overlap(job->second.nodes, basis.nodes) || (move != nullptr && Overlap(move->nodes, basis.nodes));
  const bool moves = move != nullptr && MovesNodes(*move);
  if ((is_there && (moves || is_updated)) || (basis.any_node && moves))
    return "what runs on these nodes has changed";
  return "";
}

}  // namespace siding
