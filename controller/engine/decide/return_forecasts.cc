#include "controller/engine/decide/return_forecasts.h"

#include <algorithm>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"

namespace siding {
namespace {

Back Without(BackReason why) {
  Back back;
  back.because = std::move(why);
  return back;
}

template <class T>
Known<T> Certain(T value, BackKind kind) {
  return {value, value, kind};
}

// Those behind it are not worked out. Whoever is in the queue as well is left out of both.
void KeepTheFirst(ForecastTask& task) {
  std::sort(task.queue.begin(), task.queue.end(), GoesBefore);
  std::vector<const Waiter*> back;
  for (const Waiter& waiter : task.basis.waiters) {
    if (waiter.made_way) back.push_back(&waiter);
  }
  std::sort(back.begin(), back.end(), [](const Waiter* a, const Waiter* b) {
    const auto key = [](const Returning& job) { return std::tuple(-job.priority, job.stopped, job.id); };
    return key(a->job) < key(b->job);
  });
  std::set<JobId> looked_at;
  for (size_t i = 0; i < std::min(back.size(), kMostForecast); ++i) looked_at.insert(back[i]->job.id);
  for (size_t i = 0; i < std::min(task.queue.size(), kMostForecast); ++i) looked_at.insert(task.queue[i].id);
  std::erase_if(task.queue, [&](const Waiting& w) { return !looked_at.contains(w.id); });
  std::erase_if(task.basis.waiters, [&](const Waiter& waiter) {
    const bool drop = !looked_at.contains(waiter.job.id);
    if (drop) task.known[waiter.job.id] = Without({BackKind::kTooMuch, JobId(), NodeId()});
    return drop;
  });
}

// siding's own queue at a moment to come.
class Queue {
 public:
  Queue(const std::vector<Waiting>& queue, const std::map<NodeId, Resources>& capacities, int headroom)
      : queue_(queue), capacities_(capacities), headroom_(headroom), platform_(NewStandalonePlatform()) {}

  std::vector<std::pair<JobId, std::vector<NodeId>>> Start(Time now, const std::set<JobId>& ids,
                                                           const std::map<NodeId, Resources>& room,
                                                           const std::vector<const Holding*>& held) const {
    std::vector<Waiting> waiting;
    for (const Waiting& job : queue_) {
      if (ids.contains(job.id)) waiting.push_back(job);
    }
    DropWhoFitsNowhere(waiting, capacities_, headroom_);
    std::vector<NodeRoom> left = WithoutHeadroom(room, waiting, capacities_, headroom_);
    if (IsAnyLimited(waiting)) AddReleases(left, held, now);
    std::vector<std::pair<JobId, std::vector<NodeId>>> started;
    for (Placement& placement : platform_->Place(waiting, std::move(left)))
      started.emplace_back(placement.job, std::move(placement.nodes));
    return started;
  }

 private:
  static void AddReleases(std::vector<NodeRoom>& room, const std::vector<const Holding*>& held, Time now) {
    std::map<NodeId, NodeRoom*> by_node;
    for (NodeRoom& node : room) by_node.emplace(node.id, &node);
    for (const Holding* holding : held) {
      if (!holding->until.latest || *holding->until.latest <= now) continue;
      for (const NodeId& id : holding->nodes) {
        if (const auto node = by_node.find(id); node != by_node.end())
          node->second->releases.push_back({*holding->until.latest - now, holding->per_node});
      }
    }
  }

  const std::vector<Waiting>& queue_;
  const std::map<NodeId, Resources>& capacities_;
  const int headroom_;
  const std::unique_ptr<Platform> platform_;
};

// The first in the queue of which no time is known, if it is another.
JobId WhoIsAhead(const std::vector<Waiting>& queue, const std::map<JobId, Back>& backs, JobId of) {
  for (const Waiting& job : queue) {
    if (job.id == of) break;
    const auto back = backs.find(job.id);
    if (back != backs.end() && !back->second.predicted) return job.id;
  }
  return JobId();
}

}  // namespace

std::map<JobId, Back> MakeForecast(ForecastTask task) {
  KeepTheFirst(task);
  const Queue queue(task.queue, task.basis.capacities, task.headroom);
  std::map<JobId, Back> backs = ForecastReturns(
      task.basis, [&](Time now, const std::set<JobId>& ids, const std::map<NodeId, Resources>& room,
                      const std::vector<const Holding*>& held) { return queue.Start(now, ids, room, held); });
  for (auto& [id, back] : backs) {
    if (back.because.kind == BackKind::kBehind) back.because.job = WhoIsAhead(task.queue, backs, id);
  }
  backs.merge(task.known);
  return backs;
}

ForecastTask ReturnForecasts::Task() const {
  ForecastTask task;
  task.basis.now = clock_.Now();
  task.basis.room = accounts_.Room({});
  task.basis.to_continue = accounts_.RoomToContinue();
  task.basis.capacities = accounts_.Capacities();
  task.headroom = policy_.headroom_nodes;
  for (const auto& [id, unfinished] : state_.unfinished) {
    const JobRecord& job = *unfinished;
    if (job.state == JobState::kSuspended || job.state == JobState::kSuspending) {
      AddFrozen(job, task);
    } else if (HoldsNodes(job.state)) {
      AddHolder(job, task);
    } else if (WaitsForItsNodes(job) && !IsQueued(job)) {
      AddReservation(job, task);
    } else {
      AddWaiter(job, task);
    }
  }
  return task;
}

// It gets back what it gave up, or moves.
void ReturnForecasts::AddFrozen(const JobRecord& job, ForecastTask& task) const {
  std::optional<Back> never = WhyNever(job);
  if (!never && job.displaced_by == JobId()) never = Without({BackKind::kHeld, JobId(), NodeId()});
  if (never) {
    task.known[job.id] = *never;
    for (int rank : cluster_.LiveRanks(job))
      task.basis.held.push_back(
          {job.id, {job.nodes[rank]}, cluster_.HeldBy(job, job.nodes[rank]), {}, false});
    return;
  }
  Waiter waiter{way_backs_.ReturningOf(job), true, NotBefore(job), StayOf(job)};
  if (job.state == JobState::kSuspending) {
    for (int rank : cluster_.LiveRanks(job)) waiter.job.frozen_on.push_back(job.nodes[rank]);
    waiter.from = Known<Time>{planning_.ExpectedRelease(job), {}, BackKind::kLeaving};
  }
  if (!waiter.job.frozen_on.empty()) task.basis.waiters.push_back(std::move(waiter));
}

void ReturnForecasts::AddHolder(const JobRecord& job, ForecastTask& task) const {
  const Known<Time> until = EndOf(job);
  for (int rank : cluster_.LiveRanks(job)) {
    const NodeId& node = job.nodes[rank];
    task.basis.held.push_back({job.id, {node}, cluster_.HeldBy(job, node), until, IsRequest(job)});
  }
  const bool leaves = (IsReleasing(job) || job.in_ram) && !job.current.for_good;
  if (!leaves) return;
  if (!OwnershipOf(job.spec).siding_starts) {
    task.known[job.id] = Without({BackKind::kManager, JobId(), NodeId()});
    return;
  }
  Waiter waiter{way_backs_.ReturningOf(job), job.displaced_by != JobId(), until, StayOf(job)};
  const bool dumps = job.current.event == JobEvent::kOrderDump;
  if (dumps) waiter.job.tied_to = job.current.tier == Tier::kLocal ? job.nodes : std::vector<NodeId>();
  waiter.job.was_on = job.nodes;
  if (!job.target.empty()) waiter.job.tied_to = job.target;
  // A job that is ended starts again from the queue.
  if (job.state == JobState::kKilling) waiter.made_way = false;
  AddToQueue(job, std::move(waiter), task);
}

// Its nodes are kept for it, and it will hold them.
void ReturnForecasts::AddReservation(const JobRecord& request, ForecastTask& task) const {
  const Plan& plan = request.plans.back();
  const Time start = std::max({clock_.Now(), plan.predicted_start, request.spec.not_before});
  const Known<Duration> stay = StayOf(request);
  Known<Time> until{{}, {}, stay.kind};
  if (stay.expected) until.expected = start + *stay.expected;
  if (stay.latest) until.latest = std::max(start, request.spec.start_by) + *stay.latest;
  for (const NodeId& node : plan.nodes)
    task.basis.held.push_back({request.id, {node}, cluster_.HeldBy(request, node), until, true});
}

void ReturnForecasts::AddWaiter(const JobRecord& job, ForecastTask& task) const {
  if (std::optional<Back> never = WhyNever(job)) {
    task.known[job.id] = *std::move(never);
    return;
  }
  const bool made_way = job.state == JobState::kParked && job.displaced_by != JobId();
  AddToQueue(job, {way_backs_.ReturningOf(job), made_way, NotBefore(job), StayOf(job)}, task);
}

void ReturnForecasts::AddToQueue(const JobRecord& job, Waiter waiter, ForecastTask& task) const {
  Waiting waiting = batch_.WaitingOf(job);
  if (waiting.only_on.empty()) waiting.only_on = waiter.job.tied_to;
  if (waiter.job.tied_to.empty()) waiter.job.tied_to = waiting.only_on;
  task.queue.push_back(std::move(waiting));
  task.basis.waiters.push_back(std::move(waiter));
}

// It waits for something that comes at no known time, whatever is free.
std::optional<Back> ReturnForecasts::WhyNever(const JobRecord& job) const {
  if (job.held) return Without({BackKind::kHeld, JobId(), NodeId()});
  if (!HoldsNodes(job.state) && !OwnershipOf(job.spec).siding_starts)
    return Without({BackKind::kManager, JobId(), NodeId()});
  if (recovery_.NeedsDecision(job)) return Without({BackKind::kDecision, JobId(), NodeId()});
  if (!HoldsNodes(job.state) && cluster_.HasLeftTasks(job))
    return Without({BackKind::kTasksLeft, JobId(), job.left_on.empty() ? NodeId() : job.left_on.front()});
  if (job.state == JobState::kSuspended && cluster_.LiveRanks(job).empty())
    return Without({BackKind::kTasksLeft, JobId(), NodeId()});
  return std::nullopt;
}

// Where it failed it is tried again later, or before on other nodes: that is not looked at.
std::optional<Known<Time>> ReturnForecasts::NotBefore(const JobRecord& job) const {
  std::optional<Time> from = recovery_.HeldBackUntil(job.id);
  if (recovery_.NotOn(job) != nullptr) from = std::max(from.value_or(Time{}), recovery_.NextRound(job.id));
  if (!from || *from <= clock_.Now()) return std::nullopt;
  return Certain(*from, BackKind::kRetry);
}

Known<Time> ReturnForecasts::EndOf(const JobRecord& job) const {
  const Time now = clock_.Now();
  if (IsReleasing(job) || job.in_ram) {
    const std::optional<Time> released = planning_.ExpectedRelease(job);
    // A dump takes as long as it takes; who is ended is gone after its grace.
    return {released, job.state == JobState::kKilling ? released : std::nullopt, BackKind::kLeaving};
  }
  if (const std::optional<Time> end = planning_.ExpectedEnd(job)) return Certain(*end, BackKind::kWalltime);
  const Known<Duration> stay = StayOf(job);
  if (job.state == JobState::kRestoring) {
    Known<Time> end{{}, {}, stay.kind};
    if (stay.expected) end.expected = now + *stay.expected;
    if (stay.latest) end.latest = now + *stay.latest;
    return end;
  }
  // Longer than was expected: nobody knows.
  if (!IsRequest(job)) return {};
  const Time expected = std::max(job.running_since, job.state_since) + admission_.HoldOf(job.spec);
  return expected > now ? Known<Time>{expected, {}, BackKind::kExpected} : Known<Time>{};
}

bool ReturnForecasts::IsEndedByWalltime(const JobRecord& job) const {
  const bool runs_on = IsRequest(job) && policy_.after_walltime == AfterWalltime::kPreemptible;
  return job.spec.walltime > Duration(0) && !job.preemptible_since && !runs_on;
}

Known<Duration> ReturnForecasts::StayOf(const JobRecord& job) const {
  if (IsEndedByWalltime(job)) {
    const Duration left = std::max(Duration(0), job.spec.walltime - RanBefore(job));
    return Certain(left + job.spec.kill_grace + kLookForTime, BackKind::kWalltime);
  }
  if (IsRequest(job)) return {admission_.HoldOf(job.spec), {}, BackKind::kExpected};
  return {};
}

// Of its walltime, by what it goes on from.
Duration ReturnForecasts::RanBefore(const JobRecord& job) const {
  if (HoldsNodes(job.state)) return job.state == JobState::kKilling ? Duration(0) : RanFor(job, clock_.Now());
  if (job.state != JobState::kParked) return Duration(0);
  switch (ResumptionOf(state_, job)) {
    case Resumption::kCheckpoint:
      return state_.checkpoints.at(job.checkpoints.back()).ran;
    case Resumption::kOwnSave:
      return job.saved_ran;
    case Resumption::kBeginning:
      break;
  }
  return Duration(0);
}

}  // namespace siding
