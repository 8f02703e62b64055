#include "controller/engine/observe/managed_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/engine/decide/plan_record.h"
#include "controller/engine/decide/tentative_plan.h"
#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"

namespace siding {
namespace {

// The exit code of a job of which the manager only says that it failed.
constexpr int kUnknownExit = -1;
// In all, however many agents are restarted one after the other.
constexpr Duration kWaitForNodes = std::chrono::seconds(10);

bool HasBegun(const ManagedJob& queued) {
  return !queued.nodes.empty() && queued.phase != ManagedPhase::kWaiting;
}

int ExitCodeOf(const ManagedJob* queued) { return queued != nullptr && queued->succeeded ? 0 : kUnknownExit; }

std::string WhatIsSaid(const std::string& manager, const ManagedJob* queued) {
  return queued == nullptr ? absl::StrCat(manager, " no longer knows it")
                           : absl::StrCat(queued->state, " in ", manager);
}

}  // namespace

void ManagedQueue::OnManager(ManagerChanges changes) {
  ObservedQueue& queue = observed_.queue;
  if (!std::exchange(queue.answers, changes.answers) || !queue.seen) queue.answers_since = clock_.Now();
  if (!changes.answers) return;
  for (ManagedNode& node : changes.nodes) TakeNode(std::move(node));
  for (const NodeId& id : changes.gone_nodes) {
    queue.nodes.erase(id);
    queue.unknown_since.erase(id);
  }
  std::set<JobId> changed(changes.gone_jobs.begin(), changes.gone_jobs.end());
  for (const JobId& id : changes.gone_jobs) queue.jobs.erase(id);
  for (ManagedJob& job : changes.jobs) {
    changed.insert(job.id);
    queue.jobs[job.id] = std::move(job);
  }
  accounts_.TouchAll();
  const bool is_first = !std::exchange(queue.seen, true);
  // All of it is looked at when something can be decided again.
  if (!recorder_.healthy()) return;
  if (is_first) {
    // A job that ended while the queue was not polled is not in it any more.
    for (const auto& [id, job] : state_.unfinished) changed.insert(id);
    agenda_.AddAll(state_);  // images of what is not in it any more may go
    agenda_.desired = true;  // even if it is empty: what an earlier controller did is taken back
  }
  for (JobId id : changed) {
    FollowQueue(id);
    agenda_.jobs.insert(id);  // tasks may have ended before
  }
  agenda_.schedule = true;
}

void ManagedQueue::TakeNode(ManagedNode node) {
  ObservedQueue& queue = observed_.queue;
  if (node.is_known) {
    queue.unknown_since.erase(node.id);
  } else {
    queue.unknown_since.emplace(node.id, clock_.Now());
  }
  queue.nodes[node.id] = std::move(node);
}

void ManagedQueue::FollowQueue(JobId id) {
  const ManagedJob* queued = manager_.QueuedAs(id);
  const auto found = state_.jobs.find(id);
  if (queued != nullptr && MayEnlist(*queued)) {
    Enlist(*queued);
  } else if (found != state_.jobs.end() && IsExternallyManaged(found->second) &&
             !IsTerminal(found->second.state)) {
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
      tasks_.Follow(node, task->second.report);
  }
}

void ManagedQueue::FollowWaitingAll() {
  if (!state_.queue.seen) return;
  std::vector<const JobRecord*> managed;
  for (const auto& [id, job] : state_.unfinished) {
    if (IsExternallyManaged(*job) && !IsKnownFromQueueOnly(*job)) managed.push_back(job);
  }
  for (const JobRecord* job : managed) FollowWaiting(*job, manager_.QueuedAs(job->id));
  for (const auto& [id, since] : std::map<JobId, Time>(wait_for_nodes_)) {
    const ManagedJob* queued = manager_.QueuedAs(id);
    if (queued != nullptr && MayEnlist(*queued)) {
      Enlist(*queued);
    } else {
      wait_for_nodes_.erase(id);
    }
  }
}

// A deadline job that is new, was cancelled (here: while it was held), or has a number that is used again.
bool ManagedQueue::MayEnlist(const ManagedJob& queued) const {
  if (!platform_.steers() || queued.spec.kind != JobKind::kOnDemand) return false;
  // Nobody is to make way for what only ends.
  if (queued.phase == ManagedPhase::kOver || queued.phase == ManagedPhase::kEnding) return false;
  if (queued.phase == ManagedPhase::kWaiting && !queued.may_start) return false;
  const auto known = state_.jobs.find(queued.id);
  if (known == state_.jobs.end()) return true;
  const JobRecord& job = known->second;
  return job.state == JobState::kCancelled || (job.ended && queued.submitted > *job.ended);
}

// A deadline job that the manager has. Its plan was asked for at its submission, if that was possible. Now it
// is in the queue, and siding plans for it as well as it can.
void ManagedQueue::Enlist(const ManagedJob& queued) {
  const JobSpec& spec = queued.spec;
  if (const absl::Status rule = admission_.CheckRule(spec); !rule.ok()) {
    Plan refused;
    refused.request = queued.id;
    refused.refusal = std::string(rule.message());
    recorder_.Record(queued.id, RequestRefused{spec, std::move(refused)});
    return;
  }
  if (HasBegun(queued)) {
    recorder_.Record(queued.id, JobSubmitted{spec});
    FollowRequest(state_.jobs.at(queued.id), &queued);
    return;
  }
  // Whether the margin is left was asked when it was submitted, where siding is asked then.
  const SharedTask task = planning_.TaskFor(queued.id, spec);
  std::vector<Plan> plans =
      OwnershipOf(spec).queue_starts_requests ? MakePlans(*task) : MakeFirstPlans(*task);
  Plan& plan = plans.front();
  if (!plan.feasible && WaitsForNodes(queued, plan)) return;
  wait_for_nodes_.erase(queued.id);
  if (!plan.feasible && !TakesLate(queued, plans)) {
    if (plan.earliest) plan.earliest = WithSlack(*plan.earliest, clock_.Now());
    recorder_.Record(queued.id, RequestRefused{spec, ForTheRecord(std::move(plan))});
    return;
  }
  recorder_.Record(queued.id, JobSubmitted{spec});
  requests_.Adopt(std::move(plans), task);
}

// Makes of a plan that is not feasible what is done for the job instead; false: it is refused.
bool ManagedQueue::TakesLate(const ManagedJob& queued, std::vector<Plan>& plans) {
  Plan& plan = plans.front();
  if (admission_.TakePromise(queued.spec)) {
    // Without an earliest start the plan is made again until there is one.
    if (plan.earliest) plans = {MakeLatePlan(*planning_.TaskFor(queued.id, queued.spec), plan)};
    return true;
  }
  if (admission_.Postpone(queued.spec, plan)) return true;
  // The manager has taken it. There it waits like any other, and siding sees whether its deadline can be met
  // after all.
  return plan.queued = OwnershipOf(queued.spec).queue_starts_requests;
}

// What is decided now may be for good, and who asks is not there to ask again. A node that is not known at
// the moment, because its agent or the manager was restarted, may be the one that would do; or one that a
// request gives back which only ends; or whoever has just begun there, of whom the agent has said nothing
// yet.
bool ManagedQueue::WaitsForNodes(const ManagedJob& queued, const Plan& plan) {
  const Time now = clock_.Now();
  const Time since = wait_for_nodes_.emplace(queued.id, now).first->second;
  if (now - since >= kWaitForNodes) return false;
  const bool is_any_unknown = std::any_of(plan.kept.begin(), plan.kept.end(), [](const PlanKeep& keep) {
    return keep.rule == KeepRule::kNotMeasured && keep.note.empty();
  });
  return is_any_unknown || watch_.IsAnyBrieflyAway(queued.spec.start_by) || manager_.HasWhatOnlyEnds();
}

void ManagedQueue::FollowRequest(const JobRecord& job, const ManagedJob* queued) {
  const std::string manager = job.spec.cluster_manager;
  const bool has_begun = queued != nullptr && HasBegun(*queued) && queued->started;
  if (has_begun && job.state == JobState::kPending) {
    JobMoved place;
    place.event = JobEvent::kPlace;
    place.nodes = queued->nodes;
    place.incarnation = queued->starts;
    place.reason = "started by " + manager;
    recorder_.Move(job, std::move(place));
    JobMoved start;
    start.event = JobEvent::kStarted;
    start.started = queued->started.value_or(clock_.Now());
    recorder_.Move(job, std::move(start));
  }
  const bool over = queued == nullptr || queued->phase == ManagedPhase::kOver;
  JobMoved move;
  move.reason = WhatIsSaid(manager, queued);
  const bool held = !over && queued->phase == ManagedPhase::kWaiting && !queued->may_start;
  // Its end may take long, where its node is away.
  const bool ends = !over && queued->phase == ManagedPhase::kEnding;
  if ((over || held || ends) && job.state == JobState::kPending) {
    move.event = JobEvent::kCancelled;
  } else if (over) {
    move.exit_code = ExitCodeOf(queued);
    move.event = move.exit_code == 0 ? JobEvent::kSucceeded : JobEvent::kFailed;
  } else if (queued->phase == ManagedPhase::kWaiting && job.state == JobState::kRunning) {
    move.event = JobEvent::kRestartNeeded;
  } else {
    return;
  }
  recorder_.Move(job, std::move(move));
}

// A job that is to come back, and was cancelled meanwhile, or came back and ended between two polls.
void ManagedQueue::FollowWaiting(const JobRecord& job, const ManagedJob* queued) {
  if (queued != nullptr && queued->phase != ManagedPhase::kOver) return;
  // What its agents say of its end comes first, if they are there to say it.
  const bool connected = std::any_of(job.nodes.begin(), job.nodes.end(),
                                     [&](const NodeId& node) { return cluster_.IsConnected(node); });
  // One that was to begin, and of which nobody has ever reported anything, has none.
  const std::vector<int> ranks = cluster_.LiveRanks(job);
  const bool is_reported = !IsBeginning(job.state) || std::any_of(ranks.begin(), ranks.end(), [&](int rank) {
    return cluster_.Seen(job, rank).known;
  });
  if (HoldsNodes(job.state) && connected && is_reported) return;
  JobMoved move;
  move.reason = WhatIsSaid(job.spec.cluster_manager, queued);
  move.exit_code = ExitCodeOf(queued);
  move.event = move.exit_code == 0 ? JobEvent::kSucceeded : JobEvent::kFailed;
  if (!HoldsNodes(job.state)) move.event = JobEvent::kCancelled;
  recorder_.Move(job, std::move(move));
}

}  // namespace siding
