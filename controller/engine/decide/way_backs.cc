#include "controller/engine/decide/way_backs.h"

#include <algorithm>
#include <utility>

#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"
#include "planner/way_back.h"

namespace siding {

bool WayBacks::BringBack() {
  std::vector<Returning> jobs = WhoMayReturn();
  if (jobs.empty()) return false;
  const std::vector<WayBack> way =
      PlanWayBack(std::move(jobs), accounts_.Room({}), HeldUntil(), clock_.Now(), accounts_.RoomToContinue());
  for (const WayBack& step : way) {
    const JobRecord& job = state_.jobs.at(step.job);
    JobMoved move;
    switch (step.action) {
      case WayBack::Action::kResume:
        move.event = JobEvent::kOrderResume;
        break;
      case WayBack::Action::kMove:
        move = checkpoints_.OrderDump(job, Tier::kShared);
        move.target = step.nodes;
        move.reason = "its node stays in use for longer than moving takes";
        break;
      case WayBack::Action::kRestore:
        if (!cluster_.AreUsable(step.nodes)) continue;  // one before it is tried there first
        move.event = JobEvent::kPlace;
        move.nodes = step.nodes;
        if (ResumptionOf(state_, job) == Resumption::kCheckpoint) move.checkpoint = job.checkpoints.back();
        break;
    }
    if (Next(job.state, move.event)) recorder_.Move(job, std::move(move));
  }
  return !way.empty();
}

// Jobs that a request displaced. A job that an administrator froze continues when they resume it.
std::vector<Returning> WayBacks::WhoMayReturn() const {
  std::vector<Returning> jobs;
  const auto consider = [&](const JobIndex::Jobs& some) {
    for (const auto& [id, job] : some) {
      if (MayReturn(*job)) jobs.push_back(ReturningOf(*job));
    }
  };
  consider(state_.index.unsettled());
  consider(state_.index.waiting());
  return jobs;
}

bool WayBacks::MayReturn(const JobRecord& job) const {
  if (job.displaced_by == JobId() || recovery_.MustWait(job)) return false;
  if (recovery_.NotOn(job) != nullptr) return false;  // PlaceWaiting() knows where it may be tried
  if (job.state == JobState::kSuspended) return !cluster_.LiveRanks(job).empty();
  return job.state == JobState::kParked && OwnershipOf(job.spec).siding_starts;
}

Returning WayBacks::ReturningOf(const JobRecord& job) const {
  Returning returning;
  returning.id = job.id;
  returning.priority = job.spec.priority;
  returning.stopped = job.stopped_at.value_or(job.state_since);
  returning.per_node = job.spec.per_node;
  returning.nodes = job.spec.nodes;
  if (job.state == JobState::kSuspended) {
    for (int rank : cluster_.LiveRanks(job)) returning.frozen_on.push_back(job.nodes[rank]);
    // Without room for its image it would be dumped again and again.
    if (OwnershipOf(job.spec).siding_starts && Can(job, Method::kCheckpoint) &&
        tiers_.WhyNone(job, Tier::kShared).empty())
      returning.move = cluster_.TimeToMove(job);
  } else if (ResumptionOf(state_, job) == Resumption::kCheckpoint) {
    const CheckpointRecord& checkpoint = state_.checkpoints.at(job.checkpoints.back());
    if (checkpoint.tier == Tier::kLocal) returning.tied_to = checkpoint.nodes;
  }
  returning.was_on = job.target.empty() ? job.last_nodes : job.target;
  return returning;
}

std::map<NodeId, Time> WayBacks::HeldUntil() const {
  std::map<NodeId, Time> held;
  for (const auto& [id, request] : state_.index.requests()) {
    const JobRecord& job = *request;
    // If one rank has ended, the others will end in a moment.
    if (!job.exited.empty()) continue;
    const bool waits = !HoldsNodes(job.state);
    const Time start = waits ? job.spec.start_by : std::max(job.running_since, job.state_since);
    const Time until = start + admission_.HoldOf(job.spec);
    const auto& nodes = waits && !job.plans.empty() ? job.plans.back().nodes : job.nodes;
    for (const NodeId& node : nodes) held[node] = std::max(held[node], until);
  }
  return held;
}

}  // namespace siding
