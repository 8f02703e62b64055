// Deadline jobs: planned when they are submitted, granted when their nodes are observed free, planned again
// when what was planned no longer holds.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/fault.h"
#include "controller/engine/impl.h"
#include "controller/engine/plan_record.h"
#include "controller/wire/wire.h"
#include "planner/options.h"
#include "planner/planner.h"

namespace siding {
namespace {

constexpr Duration kDoubt = std::chrono::seconds(1);
constexpr Duration kBriefly = std::chrono::seconds(10);
constexpr int kPlansInVain = 3;  // without the lock; then with it
constexpr int kPartToWait = 4;   // of the time left to a deadline, at most

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

}  // namespace

Request Engine::Impl::MakeRequest(JobId id, const JobSpec& spec) const {
  return Request{id, spec.nodes, spec.per_node, spec.start_by, spec.not_before, spec.hold};
}

// The request that is asked for, and those that wait and have not been granted: nodes that one of them gets
// early may serve another.
PlanningTask Engine::Impl::TaskFor(JobId id, const JobSpec& spec) const {
  const Time now = clock_.Now();
  PlanningTask task{state_.last_seq, policy_, {MakeRequest(id, spec)}, SnapshotFor(spec, {id}), std::nullopt};
  std::vector<JobId> ids = {id};
  const auto its_nodes = platform_.NodesFor(spec);
  for (const auto& [other, job] : state_.index.requests()) {
    if (other == id || !WaitsForItsNodes(*job) || IsQueued(*job) || job->spec.not_before > now ||
        platform_.NodesFor(job->spec) != its_nodes)
      continue;
    task.requests.push_back(MakeRequest(other, job->spec));
    ids.push_back(other);
  }
  if (ids.size() > 1 && policy_.strategy == Strategy::kLeastLoss) task.together = Room(ids);
  return task;
}

std::vector<Plan> Engine::Impl::PlanFor(JobId id, const JobSpec& spec) const {
  return MakeFirstPlans(TaskFor(id, spec));
}

// A better plan may be possible by now. That is so a moment after any plan, and not worth another.
bool Engine::Impl::StillGood(const Trial& trial, const JobSpec& spec) const {
  const Plan& first = trial.plans.front();
  return IsInTime(trial, MakeRequest(first.request, spec), policy_, clock_.Now()) && StandsOn(trial);
}

// What it rests on is as it was.
bool Engine::Impl::StandsOn(const Trial& trial) const {
  const std::vector<Event> since = events_.After(trial.seq, EventLog::kRecent, Duration(0));
  if (std::any_of(since.begin(), since.end(), [&](const Event& event) { return Shakes(event, trial); }))
    return false;
  std::vector<JobId> requests;
  for (const Plan& plan : trial.plans) {
    requests.push_back(plan.request);
    for (const PlanStep& step : plan.steps) {
      if (!std::all_of(step.nodes.begin(), step.nodes.end(), [&](const NodeId& n) { return Usable(n); }))
        return false;
    }
  }
  const std::map<NodeId, Resources> room = Room(requests);
  return std::all_of(trial.free.begin(), trial.free.end(), [&](const auto& then) {
    const auto now = room.find(then.first);
    return now != room.end() && now->second == then.second;
  });
}

// As these requests see it, which are all of this one's kind.
Snapshot Engine::Impl::SnapshotFor(const JobSpec& spec, const std::vector<JobId>& requests) const {
  Snapshot snapshot = TakeSnapshot(requests);
  if (const auto nodes = platform_.NodesFor(spec)) {
    for (NodeView& node : snapshot.nodes) node.usable = node.usable && nodes->contains(node.id);
  }
  return snapshot;
}

void Engine::Impl::Adopt(std::vector<Plan> plans) {
  for (Plan& plan : plans) {
    const JobId request = plan.request;
    // Another's plan that asks nothing new of anybody is not worth an event.
    const auto known = state_.jobs.find(request);
    const bool changed = known == state_.jobs.end() || known->second.plans.empty() || !plan.steps.empty() ||
                         known->second.plans.back().nodes != plan.nodes;
    if (!changed && &plan != &plans.front()) continue;
    Record(request, RequestPlanned{ForTheRecord(plan)});
    FaultHere<"engine.planned: a request is planned, which is not yet durable">();
    for (const PlanStep& step : plan.steps) {
      if (step.begin == Time{}) Order(plan, step);
    }
  }
}

void Engine::Impl::Order(const Plan& plan, const PlanStep& step) {
  auto it = state_.jobs.find(step.job);
  // One that a cluster manager is only just starting again gets its order when it runs, as below.
  if (it == state_.jobs.end() || !HoldsNodes(it->second.state)) return;
  JobRecord& job = it->second;
  JobMoved move;
  if (step.through_ram) {
    move.event = JobEvent::kOrderSuspend;
    move.through_ram = true;
    move.tier = step.tier;
  } else if (step.method == Method::kCheckpoint || (step.method == Method::kKill && IsHosted(job))) {
    // A cluster manager would not start a job again that was ended, not even one with an image.
    move = OrderDump(job, step.tier);
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
  if (Next(job.state, move.event)) Move(job, std::move(move));
}

namespace {

const PlanStep* EarlyStepOf(const Plan& plan, JobId job) {
  const auto it = std::find_if(plan.steps.begin(), plan.steps.end(),
                               [&](const PlanStep& step) { return step.early && step.job == job; });
  return it == plan.steps.end() ? nullptr : &*it;
}

}  // namespace

// Nothing has happened since that its time was planned for by which it is left alone for longer.
bool Engine::Impl::MayLeaveNow(const JobRecord& job) const {
  JobView view = ViewOf(job);
  view.running_since = job.running_since;
  return ProtectionOf(view, policy_, clock_.Now()).until <= clock_.Now();
}

// Steps that were planned for later and whose time has come. Each is ordered once: the order leaves a trace
// in the job's record.
bool Engine::Impl::OrderWhatIsDue(const Plan& plan) {
  const Time now = clock_.Now();
  bool any = false;
  for (const PlanStep& step : plan.steps) {
    auto it = state_.jobs.find(step.job);
    if (step.begin == Time{} || step.begin > now || it == state_.jobs.end()) continue;
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

// This job will leave by a step of the plan that is still to come.
bool Engine::Impl::WillLeave(const Plan& plan, const JobRecord& job) const {
  const auto step = std::find_if(plan.steps.begin(), plan.steps.end(), [&](const PlanStep& s) {
    return s.job == job.id && !s.early && s.begin != Time{};
  });
  if (step == plan.steps.end()) return false;
  const bool early = EarlyStepOf(plan, job.id) != nullptr;
  if (early && job.lost_methods.contains(Method::kCheckpoint)) return false;
  const bool image_under_way = job.state == JobState::kDumping || job.state == JobState::kCommitting;
  return step->begin > clock_.Now() || (early && image_under_way);
}

bool Engine::Impl::AdvanceRequests() {
  std::vector<JobRecord*> waiting;
  for (const auto& [id, job] : state_.index.requests()) {
    if (job->state == JobState::kPending) waiting.push_back(job);
  }
  std::sort(waiting.begin(), waiting.end(), [](const JobRecord* a, const JobRecord* b) {
    return std::tie(a->spec.start_by, a->id) < std::tie(b->spec.start_by, b->id);
  });
  bool any = false;
  for (JobRecord* request : waiting) {
    any |= !request->plans.empty() && OrderWhatIsDue(request->plans.back());
    if (Grant(*request)) {
      any = true;
    } else if (GiveUpInVain(*request)) {
      any = true;
    } else if (WantsAnotherPlan(request->id) != nullptr) {
      to_replan_.emplace(request->id, 0);  // by the next ReplanRequests()
    }
  }
  return any;
}

bool Engine::Impl::Grant(JobRecord& request) {
  // A cluster manager gives it its nodes, and queue.cc hears of that.
  if (IsHosted(request) || request.spec.not_before > clock_.Now() || MustWait(request)) return false;
  const std::map<NodeId, Resources> room = Room({request.id});
  const auto fits = [&](const NodeId& node) {
    auto it = room.find(node);
    return it != room.end() && it->second.Covers(request.spec.per_node);
  };
  std::vector<NodeId> nodes;
  if (!request.plans.empty()) nodes = request.plans.back().nodes;
  if (nodes.empty() || !std::all_of(nodes.begin(), nodes.end(), fits)) {
    // Other nodes may have become free before the planned ones.
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
  Move(request, std::move(move));
  return true;
}

// It no longer holds. What a cluster manager shows and what agents report come by different ways, so with one
// it has to be so for a while: its own view is late by a look, and one more victim is worse than a second.
bool Engine::Impl::HasFailed(const JobRecord& request, const Plan& plan) {
  if (StillHolds(request, plan)) {
    in_doubt_.erase(request.id);
    return false;
  }
  if (!IsHosted(request)) return true;
  const Time since = in_doubt_.emplace(request.id, clock_.Now()).first->second;
  return clock_.Now() - since >= kDoubt;
}

// Its agent is expected to dial again in a moment: it was started anew, or the controller was; or to go on,
// where it has only fallen silent. For as long as
// a request with that deadline can wait for it, what has been released for it stays its own: victims that
// went back would have to leave again. A cluster manager who goes on using the node says so.
bool Engine::Impl::IsBrieflyAway(const NodeId& node, Time start_by) const {
  const auto observed = state_.observed_nodes.find(node);
  const bool known = observed != state_.observed_nodes.end();
  if (IsHeard(node) || IsLost(node)) return false;
  const Time since = known ? observed->second.gone_since : started_;
  if (clock_.Now() - since >= std::min(kBriefly, (start_by - since) / kPartToWait)) return false;
  if (platform_.manager().empty()) return true;
  const auto managed = state_.queue.nodes.find(node);
  return managed != state_.queue.nodes.end() && managed->second.usable;
}

// Every planned node is free, or held only by jobs that are on their way off it, or will be as soon as they
// run or at a time that is still to come.
bool Engine::Impl::StillHolds(const JobRecord& request, const Plan& plan) const {
  std::map<NodeId, Resources> room = Room({request.id});
  std::set<const JobRecord*> leaving;
  for (const auto& [id, job] : state_.index.unsettled()) {
    if (IsReleasing(*job)) leaving.insert(job);
  }
  for (const PlanStep& step : plan.steps) {
    const auto victim = state_.unfinished.find(step.job);
    if (victim == state_.unfinished.end()) continue;
    if (const ManagedJob* queued = ComingBack(*victim->second)) {
      for (const NodeId& node : queued->nodes) {
        if (auto it = room.find(node); it != room.end()) it->second += queued->spec.per_node;
      }
    }
    if (!HoldsNodes(victim->second->state)) continue;
    const JobRecord& job = *victim->second;
    if (IsArriving(job.state) || WillLeave(plan, job)) leaving.insert(&job);
  }
  for (const auto& [id, other] : state_.index.requests()) {
    if (ExpectedEnd(*other)) leaving.insert(other);
  }
  for (const JobRecord* job : leaving) {
    for (int rank : LiveRanks(*job)) {
      const NodeId& node = job->nodes[rank];
      if (auto it = room.find(node); it != room.end()) it->second += HeldBy(*job, node);
    }
  }
  // Processes that should be gone are being ended; they do not call for another victim.
  for (const NodeId& node : std::set<NodeId>(plan.nodes.begin(), plan.nodes.end())) {
    if (auto it = room.find(node); it != room.end()) it->second += HeldByStrays(node);
  }
  return !plan.nodes.empty() && std::all_of(plan.nodes.begin(), plan.nodes.end(), [&](const NodeId& node) {
    auto it = room.find(node);
    return it == room.end() ? IsBrieflyAway(node, request.spec.start_by)
                            : it->second.Covers(request.spec.per_node);
  });
}

// A victim is slower than predicted, and the deadline cannot be met by waiting for it. A plan that is late
// already is not made again: there was nothing better.
bool Engine::Impl::RunsLate(const JobRecord& request, const Plan& plan) const {
  if (!plan.refusal.empty()) return false;
  const bool awaits_too_long = std::any_of(plan.awaited.begin(), plan.awaited.end(), [&](JobId id) {
    const auto job = state_.unfinished.find(id);
    const auto end = job == state_.unfinished.end() ? std::nullopt : ExpectedEnd(*job->second);
    return end && *end > request.spec.start_by;
  });
  if (awaits_too_long) return true;
  return std::any_of(plan.steps.begin(), plan.steps.end(), [&](const PlanStep& step) {
    const auto job = state_.unfinished.find(step.job);
    return job != state_.unfinished.end() && !step.early && IsReleasing(*job->second) &&
           job->second->current.request == request.id &&
           ExpectedRelease(*job->second) > request.spec.start_by;
  });
}

std::set<JobId> Engine::Impl::GoneOf(const Plan& plan) const {
  std::set<JobId> gone;
  for (JobId id : plan.awaited) {
    const auto job = state_.unfinished.find(id);
    if (job == state_.unfinished.end() || !HoldsNodes(job->second->state)) gone.insert(id);
  }
  return gone;
}

// A job whose time it waits for has gone, and others still wait for it to leave. Asked once for each that
// goes.
bool Engine::Impl::CouldBeSooner(const JobRecord& request) const {
  const Plan& plan = request.plans.back();
  const std::set<JobId> gone = GoneOf(plan);
  const auto tried = gone_tried_.find(request.id);
  const bool more = !gone.empty() && (tried == gone_tried_.end() || tried->second != gone);
  return more && std::any_of(plan.steps.begin(), plan.steps.end(), [&](const PlanStep& step) {
           const auto job = state_.unfinished.find(step.job);
           return step.begin > clock_.Now() && job != state_.unfinished.end() &&
                  HoldsNodes(job->second->state);
         });
}

// It was admitted, and what was planned for it does not hold any more, or could be had sooner. One that waits
// its turn is served as soon as can be only where the policy says so.
JobRecord* Engine::Impl::WantsAnotherPlan(JobId id) {
  const auto found = state_.jobs.find(id);
  if (found == state_.jobs.end()) return nullptr;
  JobRecord& request = found->second;
  if (request.state != JobState::kPending) return nullptr;
  if (IsQueued(request) && policy_.when_late != WhenLate::kBestEffort) return nullptr;
  if (request.plans.empty() || HasFailed(request, request.plans.back()) ||
      RunsLate(request, request.plans.back()) || CouldBeSooner(request))
    return &request;
  return nullptr;
}

// What has changed too often while it was planned is planned with the lock.
void Engine::Impl::ReplanRequests() {
  std::unique_lock lock(mutex_);
  for (auto& [id, in_vain] : std::map(to_replan_)) {
    to_replan_.erase(id);
    const JobRecord* request = WantsAnotherPlan(id);
    if (request == nullptr || !Ready().ok()) continue;
    const PlanningTask task = TaskFor(id, request->spec);
    const bool unlocked = in_vain < kPlansInVain;
    if (unlocked) lock.unlock();
    Trial trial = Try(task, MakePlansAtLeastLate(task));
    if (unlocked) lock.lock();
    request = WantsAnotherPlan(id);
    if (request == nullptr || !Ready().ok()) continue;
    if (unlocked && !StandsOn(trial)) {
      to_replan_[id] = in_vain + 1;
      continue;
    }
    AdoptInstead(*request, std::move(trial.plans));
    Advance().IgnoreError();  // it has been logged, and every caller of the API is told
  }
}

// A refusal but for who is in the way and until when, which the clock alone may change.
static std::string WithoutTimes(const std::string& refusal) {
  return refusal.substr(0, refusal.find("; in the way"));
}

// Instead of the plan that it has. An unchanged answer is not worth an event; the next change of the cluster
// asks again.
void Engine::Impl::AdoptInstead(const JobRecord& request, std::vector<Plan> plans) {
  in_doubt_.erase(request.id);
  gone_tried_.erase(request.id);
  if (!request.plans.empty()) gone_tried_[request.id] = GoneOf(request.plans.back());
  Plan& plan = plans.front();
  const bool holds = !request.plans.empty() && StillHolds(request, request.plans.back()) &&
                     !RunsLate(request, request.plans.back());
  if (holds && (!plan.feasible || plan.predicted_start >= request.plans.back().predicted_start)) return;
  if (!plan.feasible && policy_.when_late == WhenLate::kBestEffort) Queue(request.spec, plan);
  const bool unchanged = plan.nodes.empty() && !request.plans.empty() && request.plans.back().nodes.empty() &&
                         WithoutTimes(request.plans.back().refusal) == WithoutTimes(plan.refusal);
  if (!unchanged) Adopt(std::move(plans));
}

// One of these nodes is the request's, or meant for it. While it has no plan that works (an agent may be away
// for a moment) nothing is ruled out.
bool Engine::Impl::IsFor(const JobRecord& request, const std::vector<NodeId>& nodes) const {
  const std::vector<NodeId>& its =
      HoldsNodes(request.state) || request.plans.empty() ? request.nodes : request.plans.back().nodes;
  if (its.empty()) return true;
  return std::any_of(nodes.begin(), nodes.end(), [&](const NodeId& node) {
    return std::find(its.begin(), its.end(), node) != its.end();
  });
}

// The request that it made way for still wants its nodes.
bool Engine::Impl::IsInTheWay(const JobRecord& job) const {
  return RequestStillWants(job.displaced_by) && IsFor(state_.jobs.at(job.displaced_by), job.nodes);
}

// Jobs that made way through RAM. Nobody waits for their images, but without one they can go on nowhere else.
void Engine::Impl::DumpFrozen() {
  std::vector<JobRecord*> frozen;
  for (const auto& [id, job] : state_.index.unsettled()) {
    const bool ordered = job->state == JobState::kSuspended &&
                         job->current.event == JobEvent::kOrderSuspend && job->current.through_ram &&
                         !job->lost_methods.contains(Method::kCheckpoint);
    if (ordered && IsInTheWay(*job)) frozen.push_back(job);
  }
  for (JobRecord* job : frozen) {
    JobMoved move = OrderDump(*job, job->current.tier);
    move.through_ram = true;
    move.target = job->current.target;
    move.reason = absl::StrCat("while request ", job->displaced_by.value(), " has its nodes");
    Move(*job, std::move(move));
  }
}

// A victim that has only been told, or whose image is not yet committed, goes on at once when its nodes are
// not needed any more: the request is over, has found other nodes, or has been planned anew.
void Engine::Impl::WithdrawOrders() {
  std::vector<JobRecord*> leaving, requests;
  for (const auto& [id, job] : state_.index.requests()) requests.push_back(job);
  for (const auto& [id, job] : state_.index.unsettled()) {
    // What takes a while before it stops the job can be called off.
    const bool told = job->state == JobState::kSuspending &&
                      (job->current.notice > Duration(0) || job->spec.per_node.gpus > 0);
    if (job->state != JobState::kDumping && !told) continue;
    const bool behind_it = job->current.through_ram && !told;
    if (behind_it ? !IsInTheWay(*job) : job->current.request != JobId()) leaving.push_back(job);
  }
  for (JobRecord* job : leaving) {
    const bool needed = std::any_of(requests.begin(), requests.end(),
                                    [&](const JobRecord* request) { return IsFor(*request, job->nodes); });
    if (needed && !job->in_ram) continue;
    JobMoved move;
    move.event = job->state == JobState::kSuspending ? JobEvent::kFreezeFailed
                 : job->in_ram                       ? JobEvent::kStaysFrozen
                                                     : JobEvent::kDumpFailed;
    move.reason = absl::StrCat("request ", job->displaced_by.value(), " no longer needs its nodes");
    Move(*job, std::move(move));
  }
}

}  // namespace siding
