// What a cluster manager's queue says, turned into the lifecycle's events. Jobs with a deadline come from it,
// and their whole life is read from it: no agent reports their tasks. Of jobs that can be preempted it tells
// what agents cannot: how much they hold, and that one is gone while it waits to come back.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "controller/engine/impl.h"
#include "controller/engine/plan_record.h"
#include "controller/wire/wire.h"

namespace siding {
namespace {

// After a request's nodes were to be free.
constexpr Duration kInVain = std::chrono::minutes(2);
// Of what the manager did not say more than that it failed.
constexpr int kUnknownExit = -1;

bool HasBegun(const ManagedJob& queued) {
  return !queued.nodes.empty() && queued.phase != ManagedPhase::kWaiting;
}

int ExitCodeOf(const ManagedJob* queued) { return queued != nullptr && queued->succeeded ? 0 : kUnknownExit; }

std::string WhatIsSaid(const std::string& manager, const ManagedJob* queued) {
  return queued == nullptr ? absl::StrCat(manager, " no longer knows it")
                           : absl::StrCat(queued->state, " in ", manager);
}

}  // namespace

const ManagedJob* Engine::Impl::QueuedAs(JobId id) const {
  const auto found = state_.queue.jobs.find(id);
  return found == state_.queue.jobs.end() ? nullptr : &found->second;
}

void Engine::Impl::OnManager(ManagerChanges changes) {
  ObservedQueue& queue = state_.queue;
  for (ManagedNode& node : changes.nodes) queue.nodes[node.id] = std::move(node);
  for (const NodeId& id : changes.gone_nodes) queue.nodes.erase(id);
  std::set<JobId> changed(changes.gone_jobs.begin(), changes.gone_jobs.end());
  for (const JobId& id : changes.gone_jobs) queue.jobs.erase(id);
  for (ManagedJob& job : changes.jobs) {
    changed.insert(job.id);
    queue.jobs[job.id] = std::move(job);
  }
  TouchAll();
  // Looked at when something can be decided again.
  if (!health_.ok()) return;
  if (!std::exchange(queue.seen, true)) {
    // What ended while nobody looked is not in the queue any more.
    for (const auto& [id, job] : state_.unfinished) changed.insert(id);
    JudgeAll();    // images of what is not in it any more may go
    wish_ = true;  // even if there is none: what an earlier controller did is to be taken back
  }
  for (JobId id : changed) {
    FollowQueue(id);
    to_judge_.insert(id);  // tasks may have ended before
  }
  schedule_ = true;
}

void Engine::Impl::FollowQueue(JobId id) {
  const ManagedJob* queued = QueuedAs(id);
  const auto found = state_.jobs.find(id);
  if (queued != nullptr && MayEnlist(*queued)) {
    Enlist(*queued);
  } else if (found != state_.jobs.end() && IsHosted(found->second) && !IsTerminal(found->second.state)) {
    found->second.spec.kind == JobKind::kOnDemand ? FollowRequest(found->second, queued)
                                                  : FollowWaiting(found->second, queued);
  }
  if (queued == nullptr || queued->phase != ManagedPhase::kRunning) return;
  // Tasks that were reported before the queue was seen.
  for (const NodeId& node : queued->nodes) {
    const auto tasks = state_.observed_tasks.find(node);
    if (tasks == state_.observed_tasks.end()) continue;
    for (auto task = tasks->second.lower_bound(TaskId{id, 0, 0});
         task != tasks->second.end() && task->first.job == id; ++task)
      Follow(node, task->second.report);
  }
}

// A deadline job that is new, was cancelled (here: while it was held), or has a number that is used again.
bool Engine::Impl::MayEnlist(const ManagedJob& queued) const {
  if (!platform_.steers() || queued.spec.kind != JobKind::kOnDemand || queued.phase == ManagedPhase::kOver)
    return false;
  if (queued.phase == ManagedPhase::kWaiting && !queued.may_start) return false;
  const auto known = state_.jobs.find(queued.id);
  if (known == state_.jobs.end()) return true;
  const JobRecord& job = known->second;
  return job.state == JobState::kCancelled || (job.ended && queued.submitted > *job.ended);
}

// Those who were promised are served as soon as can be; for others the policy says what is done if it is
// late.
bool Engine::Impl::TakePromise(const JobSpec& spec) {
  const auto promise = std::find_if(promises_.begin(), promises_.end(), [&](const Promised& p) {
    return p.uid == spec.uid && p.start_by == spec.start_by;
  });
  if (promise == promises_.end()) return false;
  promises_.erase(promise);
  return true;
}

// Its nodes have been free for long, and the manager does not start it, for a reason that siding does not
// see. Nobody makes way for it any longer.
bool Engine::Impl::GiveUpInVain(JobRecord& request) {
  const ManagedJob* queued = IsHosted(request) ? QueuedAs(request.id) : nullptr;
  if (queued == nullptr || request.plans.empty() || request.plans.back().nodes.empty()) return false;
  const Time expected = std::max(request.spec.start_by, request.plans.back().predicted_start);
  if (clock_.Now() < std::max(expected, request.spec.not_before) + kInVain) return false;
  const std::map<NodeId, Resources> room = Room({request.id});
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
  Record(request.id, RequestRefused{std::move(spec), std::move(plan)});
  return true;
}

// A deadline job that the manager has. It has been asked about at its submission, if that was possible; now
// it is there, and is served as well as can be.
void Engine::Impl::Enlist(const ManagedJob& queued) {
  const JobSpec& spec = queued.spec;
  if (const absl::Status rule = CheckRule(spec); !rule.ok()) {
    Plan refused;
    refused.request = queued.id;
    refused.refusal = std::string(rule.message());
    Record(queued.id, RequestRefused{spec, std::move(refused)});
    return;
  }
  if (HasBegun(queued)) {
    Record(queued.id, JobSubmitted{spec});
    FollowRequest(state_.jobs[queued.id], &queued);
    return;
  }
  // Whether the margin is left was asked when it was submitted.
  std::vector<Plan> plans = MakePlans(TaskFor(queued.id, spec));
  Plan& plan = plans.front();
  if (!plan.feasible && plan.earliest && TakePromise(spec)) {
    plans = {MakeLatePlan(TaskFor(queued.id, spec), plan)};
  } else if (!plan.feasible && !Postpone(spec, plan)) {
    if (plan.earliest) plan.earliest = WithSlack(*plan.earliest, clock_.Now());
    Record(queued.id, RequestRefused{spec, ForTheRecord(std::move(plan))});
    return;
  }
  Record(queued.id, JobSubmitted{spec});
  Adopt(std::move(plans));
}

void Engine::Impl::FollowRequest(JobRecord& job, const ManagedJob* queued) {
  const std::string manager = job.spec.cluster_manager;
  const bool has_begun = queued != nullptr && HasBegun(*queued) && queued->started;
  if (has_begun && job.state == JobState::kPending) {
    JobMoved place;
    place.event = JobEvent::kPlace;
    place.nodes = queued->nodes;
    place.incarnation = queued->starts;
    place.reason = "started by " + manager;
    Move(job, std::move(place));
    JobMoved start;
    start.event = JobEvent::kStarted;
    start.started = queued->started.value_or(clock_.Now());
    Move(job, std::move(start));
  }
  const bool over = queued == nullptr || queued->phase == ManagedPhase::kOver;
  JobMoved move;
  move.reason = WhatIsSaid(manager, queued);
  const bool held = !over && queued->phase == ManagedPhase::kWaiting && !queued->may_start;
  if ((over || held) && job.state == JobState::kPending) {
    move.event = JobEvent::kCancelled;
  } else if (over) {
    move.exit_code = ExitCodeOf(queued);
    move.event = move.exit_code == 0 ? JobEvent::kSucceeded : JobEvent::kFailed;
  } else if (queued->phase == ManagedPhase::kWaiting && job.state == JobState::kRunning) {
    move.event = JobEvent::kRestartNeeded;
  } else {
    return;
  }
  Move(job, std::move(move));
}

// One that is to come back, and was cancelled meanwhile, or came back and ended while nobody looked.
void Engine::Impl::FollowWaiting(JobRecord& job, const ManagedJob* queued) {
  if (queued != nullptr && queued->phase != ManagedPhase::kOver) return;
  // What its agents say of its end comes first, if they are there to say it.
  const bool somebody =
      std::any_of(job.nodes.begin(), job.nodes.end(), [&](const NodeId& node) { return IsConnected(node); });
  if (HoldsNodes(job.state) && somebody) return;
  JobMoved move;
  move.reason = WhatIsSaid(job.spec.cluster_manager, queued);
  move.exit_code = ExitCodeOf(queued);
  move.event = move.exit_code == 0 ? JobEvent::kSucceeded : JobEvent::kFailed;
  if (!HoldsNodes(job.state)) move.event = JobEvent::kCancelled;
  Move(job, std::move(move));
}

void Engine::Impl::FollowWaitingAll() {
  if (!state_.queue.seen) return;
  std::vector<JobRecord*> hosted;
  for (const auto& [id, job] : state_.unfinished) {
    if (IsHosted(*job) && !IsSeenInQueueOnly(*job)) hosted.push_back(job);
  }
  for (JobRecord* job : hosted) FollowWaiting(*job, QueuedAs(job->id));
}

const ManagedJob* Engine::Impl::ComingBack(const JobRecord& job) const {
  if (!IsHosted(job) || HoldsNodes(job.state)) return nullptr;
  const ManagedJob* queued = QueuedAs(job.id);
  const bool started =
      queued != nullptr && queued->phase == ManagedPhase::kRunning && queued->starts > job.incarnation;
  return started ? queued : nullptr;
}

// What the manager's other jobs hold: those that siding does not move, and those that it has started again
// and no agent has reported yet.
void Engine::Impl::TakeOthers(std::map<NodeId, Resources>& room) const {
  for (const auto& [id, queued] : state_.queue.jobs) {
    if (queued.phase != ManagedPhase::kRunning) continue;
    const auto known = state_.unfinished.find(id);
    if (known != state_.unfinished.end() && ComingBack(*known->second) == nullptr) continue;
    for (const NodeId& node : queued.nodes) {
      if (auto it = room.find(node); it != room.end()) it->second -= queued.spec.per_node;
    }
  }
}

// A manager's reservation takes nodes whole.
Resources Engine::Impl::HeldBy(const JobRecord& job, const NodeId& node) const {
  const auto observed = state_.observed_nodes.find(node);
  return IsSeenInQueueOnly(job) && observed != state_.observed_nodes.end()
             ? CapacityOf(node, observed->second)
             : job.spec.per_node;
}

Resources Engine::Impl::CapacityOf(const NodeId& node, const ObservedNode& observed) const {
  const auto managed = state_.queue.nodes.find(node);
  return managed == state_.queue.nodes.end() ? FromProto(observed.hello.capacity())
                                             : managed->second.capacity;
}

}  // namespace siding
