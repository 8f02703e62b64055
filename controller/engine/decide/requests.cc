#include "controller/engine/decide/requests.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/fault.h"
#include "controller/engine/decide/plan_record.h"
#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"
#include "planner/options.h"

namespace siding {
namespace {

JobEvent OrderFor(Method method) {
  switch (method) {
    case Method::kSuspend:
      return JobEvent::kOrderSuspend;
    case Method::kCheckpoint:
      return JobEvent::kOrderDump;
    case Method::kApp:
      return JobEvent::kOrderSave;
    case Method::kKill:
      return JobEvent::kOrderKill;
  }
  return JobEvent::kOrderKill;
}

// A refusal without the part that names the jobs in the way and their times: the clock alone changes it.
std::string WithoutTimes(const std::string& refusal) {
  return refusal.substr(0, refusal.find("; in the way"));
}

bool HaveCommon(const std::vector<NodeId>& a, const std::vector<NodeId>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](const NodeId& node) { return std::find(b.begin(), b.end(), node) != b.end(); });
}

// How long the manager may take to start a job whose nodes are free.
constexpr Duration kStartPatience = std::chrono::minutes(2);
// After so many failed starts in a row, whatever the nodes, a request costs nobody anything more.
constexpr int kStartsWithVictims = 5;

}  // namespace

void Requests::Adopt(std::vector<Plan> plans, SharedTask task) {
  const Plan& first = plans.front();
  if (const auto known = state_.jobs.find(first.request); plans.size() == 1 && known != state_.jobs.end())
    bases_.Keep(first.request, known->second.plans.size(), first, std::move(task));
  for (Plan& plan : plans) {
    const JobId request = plan.request;
    // A plan of another request that orders nothing new is not worth an event.
    const auto known = state_.jobs.find(request);
    const bool changed = known == state_.jobs.end() || known->second.plans.empty() || !plan.steps.empty() ||
                         known->second.plans.back().nodes != plan.nodes;
    if (!changed && &plan != &plans.front()) continue;
    recorder_.Record(request, RequestPlanned{ForTheRecord(plan)});
    FaultHere<"engine.planned: a request is planned, which is not yet durable">();
    for (const PlanStep& step : plan.steps) {
      if (step.begin == Time{}) Order(plan, step);
    }
  }
}

void Requests::AdoptInstead(const JobRecord& request, std::vector<Plan> plans, SharedTask task) {
  watch_.NotePlanned(request);
  Plan& plan = plans.front();
  const bool holds = !request.plans.empty() && watch_.StillHolds(request, request.plans.back()) &&
                     !watch_.RunsLate(request, request.plans.back());
  if (holds && (!plan.feasible || plan.predicted_start >= request.plans.back().predicted_start)) return;
  // For one that waits in a queue no job is preempted, whoever starts it.
  if (IsQueued(request) && policy_.when_late == WhenLate::kQueue && !plan.steps.empty()) return;
  // Its victims would come back, and leave a second time.
  if (!plan.feasible && !request.plans.empty() && watch_.HoldsInAMoment(request, request.plans.back()))
    return;
  const std::string why_for_nobody = plan.steps.empty() ? "" : WhyNobodyMakesWay(request);
  if (!why_for_nobody.empty()) {
    plan = {};
    plan.request = request.id;
    plan.refusal = why_for_nobody;
    plans.resize(1);
  }
  const bool may_queue = !why_for_nobody.empty() || policy_.when_late == WhenLate::kBestEffort ||
                         !OwnershipOf(request.spec).queue_starts_requests;
  if (!plan.feasible && watch_.IsServedInTimeOnly(request)) {
    plan.queued = true;
  } else if (!plan.feasible && may_queue && policy_.when_late != WhenLate::kRefuse) {
    planning_.Queue(request.spec, plan);
  }
  const bool unchanged = plan.nodes.empty() && !request.plans.empty() && request.plans.back().nodes.empty() &&
                         WithoutTimes(request.plans.back().refusal) == WithoutTimes(plan.refusal);
  if (!unchanged) Adopt(std::move(plans), std::move(task));
}

// Though it waits for its nodes. Empty: they do.
std::string Requests::WhyNobodyMakesWay(const JobRecord& request) const {
  // It has lost its node after its deadline, which was kept: it is one of those that come too late.
  if (policy_.when_late == WhenLate::kQueue && StartsOverLate(request)) return "its deadline has passed";
  // It may be none that any node can start.
  if (OwnershipOf(request.spec).siding_starts && request.start_failures >= kStartsWithVictims)
    return absl::StrCat("it could not be started ", request.start_failures,
                        " times, so no more jobs make way for it");
  return "";
}

bool Requests::Advance() {
  std::vector<const JobRecord*> waiting;
  for (const auto& [id, job] : state_.index.requests()) {
    if (job->state == JobState::kPending) waiting.push_back(job);
  }
  std::sort(waiting.begin(), waiting.end(), [](const JobRecord* a, const JobRecord* b) {
    return std::tie(a->spec.start_by, a->id) < std::tie(b->spec.start_by, b->id);
  });
  bool any = false;
  for (const JobRecord* request : waiting) {
    if (manager_.IsAboutToStart(*request)) continue;  // nobody has to leave for it any more
    any |= !request->plans.empty() && OrderWhatIsDue(*request);
    if (Grant(*request) || AbandonUnstarted(*request)) {
      any = true;
    } else if (watch_.WantsAnotherPlan(request->id) != nullptr) {
      to_replan_.emplace(request->id, 0);  // by the next ReplanRequests()
    }
  }
  return any;
}

void Requests::DumpFrozen() {
  std::vector<const JobRecord*> frozen;
  for (const auto& [id, job] : state_.index.unsettled()) {
    const bool ordered = job->state == JobState::kSuspended && IsDumpedFrozen(*job);
    if (ordered && RequestNeedsItsNodes(*job)) frozen.push_back(job);
  }
  for (const JobRecord* job : frozen) {
    const std::optional<Tier> tier = checkpoints_.TierWithRoom(*job, job->current.tier);
    if (!tier) continue;  // it waits, in RAM
    JobMoved move = checkpoints_.OrderDump(*job, *tier);
    move.through_ram = true;
    move.target = job->current.target;
    move.reason = absl::StrCat("while request ", job->displaced_by.value(), " has its nodes");
    recorder_.Move(*job, std::move(move));
  }
}

void Requests::WithdrawOrders() {
  std::vector<const JobRecord*> leaving, requests;
  for (const auto& [id, job] : state_.index.requests()) requests.push_back(job);
  for (const auto& [id, job] : state_.index.unsettled()) {
    if (job->state == JobState::kKilling) {
      if (MayGoOn(*job)) leaving.push_back(job);
      continue;
    }
    // An order that takes a while before it stops the job can be withdrawn.
    const bool told = job->state == JobState::kSuspending &&
                      (job->current.notice > Duration(0) || job->spec.per_node.gpus > 0);
    if (job->state != JobState::kDumping && !told) continue;
    const bool behind_it = job->current.through_ram && !told;
    if (behind_it ? !RequestNeedsItsNodes(*job) : job->current.request != JobId()) leaving.push_back(job);
  }
  for (const JobRecord* job : leaving) {
    // Nobody is to be ended for a request that is back in the queue, and where the manager does not start it
    // by itself nothing is kept for it, which a victim would be saved for. Nor is
    // anybody to be evicted where nothing is kept: others would have what he leaves.
    const bool is_ended = job->state == JobState::kKilling;
    const bool is_evicted = is_ended && IsExternallyManaged(*job);
    const bool needed = std::any_of(requests.begin(), requests.end(), [&](const JobRecord* request) {
      if (is_evicted && !HoldsNodes(request->state)) {
        const Plan* const kept = KeptPlanOf(*request);
        return kept != nullptr && HaveCommon(kept->nodes, job->nodes);
      }
      const bool is_kept = !is_ended && OwnershipOf(request->spec).queue_starts_requests;
      return IsFor(*request, job->nodes) && (is_kept || !IsQueued(*request));
    });
    if (needed && !job->in_ram) continue;
    JobMoved move;
    move.event = job->state == JobState::kKilling      ? GoesOnBy(*job)
                 : job->state == JobState::kSuspending ? JobEvent::kFreezeFailed
                 : job->in_ram                         ? JobEvent::kStaysFrozen
                                                       : JobEvent::kDumpFailed;
    move.reason = absl::StrCat("request ", job->displaced_by.value(), " no longer needs its nodes");
    recorder_.Move(*job, std::move(move));
  }
}

// An order to end it for a request that nobody has carried out: its node is away, or its pod could not be
// evicted so far. If it was carried out unheard of, its end is taken for a loss, and it starts again.
bool Requests::MayGoOn(const JobRecord& job) const {
  if (job.current.request == JobId() || job.current.for_good || job.current.over_limit) return false;
  if (IsExternallyManaged(job)) return manager_.RunsInQueue(job.id) && cluster_.IsNotEndedYet(job);
  const std::vector<int> ranks = cluster_.LiveRanks(job);
  // Whether one that had not begun ever did would not be seen.
  return HasBegun(job) && !ranks.empty() && std::none_of(ranks.begin(), ranks.end(), [&](int rank) {
           return cluster_.Seen(job, rank).connected;
         });
}

void Requests::Order(const Plan& plan, const PlanStep& step) {
  auto it = state_.jobs.find(step.job);
  // A job that a cluster manager is starting gets its order when it runs, as below.
  if (it == state_.jobs.end() || !HoldsNodes(it->second.state)) return;
  const JobRecord& job = it->second;
  // Of a method that had failed: it was planned for the end of its pause.
  if (const auto back = job.methods_back_at.find(step.method);
      back != job.methods_back_at.end() && back->second <= clock_.Now())
    recorder_.Record(job.id, MethodRegained{step.method});
  JobMoved move;
  if (step.through_ram) {
    move.event = JobEvent::kOrderSuspend;
    move.through_ram = true;
    move.tier = step.tier;
  } else if (step.method == Method::kCheckpoint) {
    move = step.early ? checkpoints_.OrderImage(job, step.tier) : checkpoints_.OrderDump(job, step.tier);
  } else if (step.method == Method::kKill && !OwnershipOf(job.spec).siding_ends) {
    // A cluster manager would not start a job again that was ended, not even one with an image.
    move = checkpoints_.OrderDump(job, checkpoints_.TierWithRoom(job, step.tier).value_or(step.tier));
  } else {
    move.event = OrderFor(step.method);
  }
  move.keep_running = step.early;
  if (!step.early) {
    move.request = plan.request;
    // A save and a kill have a grace of their own.
    if (move.event == JobEvent::kOrderSuspend || move.event == JobEvent::kOrderDump)
      move.notice = NoticeOf(job);
  }
  move.target = step.target;
  move.predicted = step.predicted_release;
  move.reason = step.reason;
  // A job that is only arriving gets its order when it runs: the plan is made again then.
  if (Next(job.state, move.event)) recorder_.Move(job, std::move(move));
}

// Steps that were planned for later and whose time has come. Each is ordered once: the order leaves a trace
// in the job's record.
bool Requests::OrderWhatIsDue(const JobRecord& request) {
  const Plan& plan = request.plans.back();
  const Time now = clock_.Now();
  bool any = false;
  for (const PlanStep& step : plan.steps) {
    auto it = state_.jobs.find(step.job);
    if (step.begin == Time{} || step.begin > now || it == state_.jobs.end()) continue;
    if (step.begin <= request.begun) continue;  // of the plan for its last start, which needed it no more
    const JobRecord& job = it->second;
    if (job.state != JobState::kRunning) continue;
    if (step.early) {
      auto newest = state_.checkpoints.find(CheckpointOf(job, job.checkpoint_count));
      if (newest != state_.checkpoints.end() && newest->second.created >= step.begin) continue;
    } else {
      if (job.last_preempted && *job.last_preempted >= step.begin) continue;
      if (!MayLeaveNow(job)) continue;
      // Without the image that was to be taken in advance it must not be ended: the plan no longer holds.
      const PlanStep* early = EarlyStepOf(plan, job.id);
      if (early != nullptr && job.durable_at < early->begin) continue;
    }
    Order(plan, step);
    any = true;
  }
  return any;
}

// Its protection (min_runtime, cooldown) has not been extended since its step was planned.
bool Requests::MayLeaveNow(const JobRecord& job) const {
  JobView view = planning_.ViewOf(job);
  view.running_since = job.running_since;
  return ProtectionOf(view, policy_, clock_.Now()).until <= clock_.Now();
}

bool Requests::Grant(const JobRecord& request) {
  // A cluster manager gives it its nodes; ManagedQueue observes that.
  if (!OwnershipOf(request.spec).siding_starts || request.spec.not_before > clock_.Now() ||
      recovery_.MustWait(request))
    return false;
  std::map<NodeId, Resources> room = accounts_.RoomFor(request);
  const auto fits = [&](const NodeId& node) {
    auto it = room.find(node);
    return it != room.end() && it->second.Covers(request.spec.per_node);
  };
  std::vector<NodeId> nodes;
  if (!request.plans.empty()) nodes = request.plans.back().nodes;
  if (nodes.empty() || !std::all_of(nodes.begin(), nodes.end(), fits)) {
    // Other nodes may have become free before the planned ones. There it takes nothing that others wait for.
    room = accounts_.Room({request.id});
    nodes.clear();
    for (const auto& [id, free] : room) {
      if (nodes.size() < static_cast<size_t>(request.spec.nodes) && fits(id)) nodes.push_back(id);
    }
    if (nodes.size() < static_cast<size_t>(request.spec.nodes)) return false;
  }
  FaultHere<"engine.grant: a request is about to be granted its nodes">();
  JobMoved move;
  move.event = JobEvent::kPlace;
  move.nodes = nodes;
  recorder_.Move(request, std::move(move));
  return true;
}

// Its nodes have been free for long, and the manager does not start it, for a reason that siding does not
// see. No job makes way for it any longer.
bool Requests::AbandonUnstarted(const JobRecord& request) {
  const ManagedJob* queued =
      OwnershipOf(request.spec).siding_starts ? nullptr : manager_.QueuedAs(request.id);
  if (queued == nullptr || request.plans.empty() || request.plans.back().nodes.empty()) return false;
  // While the manager is away it starts nothing, and its nodes are not seen.
  if (!manager_.IsHeard()) return false;
  const Time expected = std::max({request.spec.start_by, request.plans.back().predicted_start,
                                  request.spec.not_before, state_.queue.answers_since});
  if (clock_.Now() < expected + kStartPatience) return false;
  const std::map<NodeId, Resources> room = accounts_.Room({request.id});
  for (const NodeId& node : request.plans.back().nodes) {
    const auto there = room.find(node);
    if (there == room.end() || !there->second.Covers(request.spec.per_node)) return false;
  }
  Plan plan = request.plans.back();
  plan.feasible = false;
  plan.steps.clear();
  plan.nodes.clear();
  plan.refusal = absl::StrCat("its nodes were free, and ", request.spec.cluster_manager,
                              " did not start it: ", queued->state);
  JobSpec spec = request.spec;
  recorder_.Record(request.id, RequestRefused{std::move(spec), std::move(plan)});
  return true;
}

// One of these nodes is the request's, or meant for it. While it has no plan that works (an agent may be away
// for a moment) no node is ruled out that it may have.
bool Requests::IsFor(const JobRecord& request, const std::vector<NodeId>& nodes) const {
  const std::vector<NodeId>& its =
      HoldsNodes(request.state) || request.plans.empty() ? request.nodes : request.plans.back().nodes;
  if (its.empty()) {
    if (watch_.IsServedInTimeOnly(request)) return false;
    const auto possible = platform_.NodesFor(request.spec);
    return !possible || std::any_of(nodes.begin(), nodes.end(),
                                    [&](const NodeId& node) { return possible->contains(node); });
  }
  return HaveCommon(its, nodes);
}

// The request that it made way for still wants its nodes.
bool Requests::RequestNeedsItsNodes(const JobRecord& job) const {
  return RequestStillWants(state_, job.displaced_by) && IsFor(state_.jobs.at(job.displaced_by), job.nodes);
}

}  // namespace siding
