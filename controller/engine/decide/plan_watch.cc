#include "controller/engine/decide/plan_watch.h"

#include <algorithm>

#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"
#include "planner/options.h"

namespace siding {
namespace {

constexpr Duration kDoubt = std::chrono::seconds(1);
// Between two plans for a request that is served in time only: most often the next one is not better. With
// many of them it is longer, so that in all no more than so many are made.
constexpr Duration kLookAgain = std::chrono::seconds(5);
constexpr int kLooksPerSecond = 5;
constexpr Duration kBriefly = std::chrono::seconds(10);
constexpr int kPartToWait = 4;  // of the time left to a deadline, at most

}  // namespace

const JobRecord* PlanWatch::WantsAnotherPlan(JobId id) {
  const auto found = state_.jobs.find(id);
  if (found == state_.jobs.end()) return nullptr;
  const JobRecord& request = found->second;
  if (request.state != JobState::kPending || !manager_.IsHeard()) return nullptr;
  if (manager_.IsAboutToStart(request)) return nullptr;  // what it holds itself is not in its way
  const bool in_time = policy_.when_late != WhenLate::kQueue && clock_.Now() < request.spec.start_by;
  if (IsServedInTimeOnly(request) && !in_time) return nullptr;
  if (request.plans.empty() || HasFailed(request, request.plans.back()) ||
      RunsLate(request, request.plans.back()) || CouldBeSooner(request))
    return &request;
  return nullptr;
}

bool PlanWatch::IsServedInTimeOnly(const JobRecord& request) const {
  return IsQueued(request) && policy_.when_late != WhenLate::kBestEffort &&
         OwnershipOf(request.spec).queue_starts_requests;
}

bool PlanWatch::StillHolds(const JobRecord& request, const Plan& plan) const {
  return Holds(request, plan, [&](const NodeId& node) { return IsBrieflyAway(node, request.spec.start_by); });
}

bool PlanWatch::HoldsInAMoment(const JobRecord& request, const Plan& plan) const {
  return Holds(request, plan, [&](const NodeId& node) {
    return IsBrieflyAway(node, request.spec.start_by) || IsTriedInAMoment(node);
  });
}

bool PlanWatch::Holds(const JobRecord& request, const Plan& plan, const IsExcused& is_excused) const {
  // Somebody may have reserved them since.
  const auto its_nodes = platform_.NodesFor(request.spec);
  if (its_nodes && !std::all_of(plan.nodes.begin(), plan.nodes.end(),
                                [&](const NodeId& node) { return its_nodes->contains(node); }))
    return false;
  const std::set<const JobRecord*> leaving = LeavingFor(plan);
  std::set<JobId> ids;
  for (const JobRecord* job : leaving) ids.insert(job->id);
  std::map<NodeId, Resources> room = accounts_.RoomFor(request, std::move(ids));
  for (const PlanStep& step : plan.steps) {
    const auto victim = state_.unfinished.find(step.job);
    const ManagedJob* queued =
        victim == state_.unfinished.end() ? nullptr : manager_.ComingBack(*victim->second);
    if (queued == nullptr) continue;
    for (const NodeId& node : queued->nodes) {
      if (auto it = room.find(node); it != room.end()) it->second += queued->spec.per_node;
    }
  }
  for (const JobRecord* job : leaving) {
    for (int rank : cluster_.LiveRanks(*job)) {
      const NodeId& node = job->nodes[rank];
      if (auto it = room.find(node); it != room.end()) it->second += cluster_.HeldBy(*job, node);
    }
  }
  // Processes that should be gone are being ended; they do not call for another victim.
  for (const NodeId& node : std::set<NodeId>(plan.nodes.begin(), plan.nodes.end())) {
    if (auto it = room.find(node); it != room.end()) it->second += accounts_.HeldByStrays(node);
  }
  return !plan.nodes.empty() && std::all_of(plan.nodes.begin(), plan.nodes.end(), [&](const NodeId& node) {
    auto it = room.find(node);
    return it == room.end() ? is_excused(node) : it->second.Covers(request.spec.per_node);
  });
}

// Whose room it may count on: those that leave already, and those that it waits for.
std::set<const JobRecord*> PlanWatch::LeavingFor(const Plan& plan) const {
  std::set<const JobRecord*> leaving;
  for (const auto& [id, job] : state_.index.unsettled()) {
    if (IsReleasing(*job) && planning_.ExpectedRelease(*job)) leaving.insert(job);
  }
  for (const PlanStep& step : plan.steps) {
    const auto victim = state_.unfinished.find(step.job);
    if (victim == state_.unfinished.end() || !HoldsNodes(victim->second->state)) continue;
    const JobRecord& job = *victim->second;
    if (IsArriving(job.state) || WillLeave(plan, job)) leaving.insert(&job);
  }
  for (JobId id : AwaitedToEnd(plan)) {
    const auto job = state_.unfinished.find(id);
    if (job != state_.unfinished.end() && planning_.ExpectedEnd(*job->second)) leaving.insert(job->second);
  }
  return leaving;
}

bool PlanWatch::RunsLate(const JobRecord& request, const Plan& plan) const {
  if (!plan.refusal.empty()) return false;
  const std::vector<JobId> ending = AwaitedToEnd(plan);
  const bool awaits_too_long = std::any_of(ending.begin(), ending.end(), [&](JobId id) {
    const auto job = state_.unfinished.find(id);
    const auto end = job == state_.unfinished.end() ? std::nullopt : planning_.ExpectedEnd(*job->second);
    return end && *end > request.spec.start_by;
  });
  if (awaits_too_long) return true;
  return std::any_of(plan.steps.begin(), plan.steps.end(), [&](const PlanStep& step) {
    const auto job = state_.unfinished.find(step.job);
    return job != state_.unfinished.end() && !step.early && IsReleasing(*job->second) &&
           job->second->current.request == request.id &&
           planning_.ExpectedRelease(*job->second).value_or(kForGood) > request.spec.start_by;
  });
}

std::set<JobId> PlanWatch::NotWaitedFor(const Plan& plan) const {
  std::set<JobId> gone;
  for (JobId id : plan.awaited) {
    const auto job = state_.unfinished.find(id);
    if (job == state_.unfinished.end() || !HoldsNodes(job->second->state)) gone.insert(id);
  }
  // Whose checkpoint is made: before it was, it could not leave.
  for (const PlanStep& step : plan.steps) {
    const auto job = state_.unfinished.find(step.job);
    if (job == state_.unfinished.end() || step.early) continue;
    if (job->second->state == JobState::kRunning && job->second->state_since > plan.decided &&
        job->second->ordered_at <= plan.decided)
      gone.insert(step.job);
  }
  return gone;
}

void PlanWatch::NotePlanned(const JobRecord& request) {
  Forget(request.id);
  if (!request.plans.empty()) not_waited_for_[request.id] = NotWaitedFor(request.plans.back());
}

// This job will leave by a step of the plan that is still to come.
bool PlanWatch::WillLeave(const Plan& plan, const JobRecord& job) const {
  const auto step = std::find_if(plan.steps.begin(), plan.steps.end(), [&](const PlanStep& s) {
    return s.job == job.id && !s.early && s.begin != Time{};
  });
  if (step == plan.steps.end() || KeepsItsNodes(job)) return false;
  const PlanStep* early = EarlyStepOf(plan, job.id);
  if (early != nullptr && CannotBeMade(*early, job)) return false;
  const bool image_under_way = job.state == JobState::kDumping || job.state == JobState::kCommitting;
  return step->begin > clock_.Now() || (early != nullptr && image_under_way);
}

// The image that was to be taken in advance: it has failed, or its job cannot be checkpointed when its time
// comes.
bool PlanWatch::CannotBeMade(const PlanStep& early, const JobRecord& job) const {
  const auto back = job.methods_back_at.find(Method::kCheckpoint);
  const bool comes_back = back != job.methods_back_at.end() && back->second <= early.begin;
  if (job.lost_methods.contains(Method::kCheckpoint) && !comes_back) return true;
  const auto newest = state_.checkpoints.find(CheckpointOf(job, job.checkpoint_count));
  const bool has_failed = newest != state_.checkpoints.end() && newest->second.created >= early.begin &&
                          newest->second.state != CheckpointState::kBeingMade && job.durable_at < early.begin;
  // There is time for a second one, as long as the first was to take: the tier may say before what it has.
  return has_failed && (clock_.Now() >= early.predicted_release || !tiers_.IsInDoubt(job, early.tier));
}

// The plan no longer holds. With a cluster manager this has to be so for a while: its queue and the agents
// report separately, its view is one poll late, and one more victim costs more than a second.
bool PlanWatch::HasFailed(const JobRecord& request, const Plan& plan) {
  if (StillHolds(request, plan)) {
    in_doubt_.erase(request.id);
    return false;
  }
  if (OwnershipOf(request.spec).siding_starts) return true;
  const Time now = clock_.Now();
  const Time since = in_doubt_.emplace(request.id, now).first->second;
  if (!IsServedInTimeOnly(request)) return now - since >= kDoubt;
  const Duration part = (request.spec.start_by - now) / kPartToWait;
  const Duration for_all = std::chrono::seconds(state_.index.requests().size()) / kLooksPerSecond;
  return now - since >= std::max(std::clamp(part, kDoubt, kLookAgain), for_all);
}

// It is expected to be back soon: its agent, or the controller, was restarted, or it is only silent for a
// moment; or the manager was restarted and has not heard of it yet. As long as a request with that deadline
// can wait for it, nodes that were released for the request are kept: victims that went back would have to
// leave again. A cluster manager that still uses the node says so.
bool PlanWatch::IsBrieflyAway(const NodeId& node, Time start_by) const {
  if (state_.IsLost(node)) return false;
  const auto unknown = state_.queue.unknown_since.find(node);
  const bool is_known = unknown == state_.queue.unknown_since.end(), is_heard = cluster_.IsHeard(node);
  if (is_heard && is_known) return false;
  Time since = is_known ? startup_.started : unknown->second;
  const auto observed = state_.observed_nodes.find(node);
  if (!is_heard && observed != state_.observed_nodes.end())
    since = std::max(since, observed->second.gone_since);
  if (clock_.Now() - since >= std::min(kBriefly, (start_by - since) / kPartToWait)) return false;
  if (platform_.manager().empty()) return true;
  const auto managed = state_.queue.nodes.find(node);
  return managed != state_.queue.nodes.end() && (managed->second.usable || !is_known);
}

bool PlanWatch::IsTriedInAMoment(const NodeId& node) const {
  if (!cluster_.InUse(node)) return false;
  const ObservedNode& observed = state_.observed_nodes.at(node);
  return observed.problem.empty() && observed.starts.count > 0 &&
         observed.starts.until <= clock_.Now() + kBriefly;
}

bool PlanWatch::IsAnyBrieflyAway(Time start_by) const {
  return std::any_of(state_.queue.nodes.begin(), state_.queue.nodes.end(),
                     [&](const auto& node) { return IsBrieflyAway(node.first, start_by); });
}

// A job for whose end or image the plan waits has left, or been saved, early, while others have not been
// ordered to leave yet. True once for each such job.
bool PlanWatch::CouldBeSooner(const JobRecord& request) const {
  const Plan& plan = request.plans.back();
  const std::set<JobId> gone = NotWaitedFor(plan);
  const auto tried = not_waited_for_.find(request.id);
  const bool more = !gone.empty() && (tried == not_waited_for_.end() || tried->second != gone);
  return more && std::any_of(plan.steps.begin(), plan.steps.end(), [&](const PlanStep& step) {
           const auto job = state_.unfinished.find(step.job);
           return step.begin > clock_.Now() && job != state_.unfinished.end() &&
                  HoldsNodes(job->second->state);
         });
}

}  // namespace siding
