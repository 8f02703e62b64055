#include "controller/engine/state/node_accounts.h"

#include <algorithm>
#include <utility>

#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"

namespace siding {
namespace {

constexpr Duration kRanksEndWithin = std::chrono::seconds(2);

// What a frozen task keeps of its node: its memory (as measured, or as it asked), and GPUs that it has not
// been seen to leave.
Resources FrozenHold(const JobRecord& job, const v1::TaskReport& task) {
  return Resources{0, std::max(Bytes{task.memory()}, job.spec.per_node.memory), task.gpus_size()};
}

}  // namespace

void NodeAccounts::TouchAll() {
  for (const auto& [node, observed] : state_.observed_nodes) stale_.insert(node);
}

void NodeAccounts::TouchNodesOf(JobId id) {
  const auto job = state_.jobs.find(id);
  if (job != state_.jobs.end()) stale_.insert(job->second.nodes.begin(), job->second.nodes.end());
}

void NodeAccounts::TouchTasksOf(JobId job) {
  for (const auto& [node, tasks] : state_.observed_tasks) {
    const auto task = tasks.lower_bound(TaskId{job, 0, 0});
    if (task != tasks.end() && task->first.job == job) stale_.insert(node);
  }
}

const std::map<NodeId, NodeAccounts::Account>& NodeAccounts::Accounts() const {
  for (const NodeId& node : std::exchange(stale_, {})) {
    if (const auto account = AccountOf(node)) {
      accounts_[node] = *account;
    } else {
      accounts_.erase(node);
    }
  }
  return accounts_;
}

std::map<NodeId, Resources> NodeAccounts::Capacities() const {
  std::map<NodeId, Resources> capacities;
  for (const auto& [id, account] : Accounts())
    capacities.emplace_hint(capacities.end(), id, account.capacity);
  return capacities;
}

std::map<NodeId, Resources> NodeAccounts::Room(const std::vector<JobId>& requests) const {
  std::map<NodeId, Resources> room;
  for (const auto& [id, account] : Accounts()) room.emplace_hint(room.end(), id, account.free);
  TakeReserved(room, requests);
  if (!requests.empty()) GiveWhatIsFrozen(room);
  TakeLeftTasks(room);
  manager_.TakeOthers(room);
  return room;
}

std::map<NodeId, Resources> NodeAccounts::RoomFor(const JobRecord& request, std::set<JobId> leaving) const {
  std::map<NodeId, Resources> room;
  for (const auto& [id, account] : Accounts()) room.emplace_hint(room.end(), id, account.free);
  for (const auto& [id, other] : state_.index.requests()) {
    if (id == request.id || !WaitsForItsNodes(*other)) continue;
    for (const auto& [node, claim] : ClaimsOf(*other, leaving)) {
      if (const auto free = room.find(node); free != room.end()) free->second -= claim;
    }
  }
  GiveWhatIsFrozen(room);
  TakeLeftTasks(room);
  manager_.TakeOthers(room);
  return room;
}

// What it holds of what is free now: all but what will be given back by those for whom it waits. Each of
// these gives it back once: `counted`.
std::map<NodeId, Resources> NodeAccounts::ClaimsOf(const JobRecord& request, std::set<JobId>& counted) const {
  const Plan& plan = request.plans.back();
  std::map<NodeId, Resources> claims;
  for (const NodeId& node : plan.nodes)
    claims.try_emplace(node, Resources{0}).first->second += cluster_.HeldBy(request, node);
  const auto give_back = [&](JobId id, bool keeps_memory) {
    const auto job = state_.unfinished.find(id);
    if (job == state_.unfinished.end() || !HoldsNodes(job->second->state) || job->second->in_ram) return;
    if (!counted.insert(id).second) return;
    for (int rank : cluster_.LiveRanks(*job->second)) {
      const auto claim = claims.find(job->second->nodes[rank]);
      if (claim == claims.end()) continue;
      const Resources held = cluster_.HeldBy(*job->second, claim->first);
      claim->second -= keeps_memory ? FreedByFreezing(held) : held;
    }
  };
  for (const PlanStep& step : plan.steps) {
    if (!step.early) give_back(step.job, step.through_ram || step.method == Method::kSuspend);
  }
  for (const JobId& id : AwaitedToEnd(plan)) give_back(id, false);
  for (auto& [node, claim] : claims)
    claim = {std::max(0, claim.slots), std::max(Bytes{0}, claim.memory), std::max(0, claim.gpus)};
  return claims;
}

std::map<NodeId, Resources> NodeAccounts::RoomToContinue() const {
  std::map<NodeId, Resources> room;
  for (const auto& [node, observed] : state_.observed_nodes) {
    if (observed.starts.count == 0 && !observed.faulty) continue;
    if (cluster_.InUse(node) && !cluster_.Usable(node)) room[node] = CountOn(node).free;
  }
  TakeReserved(room, {});
  TakeLeftTasks(room);
  manager_.TakeOthers(room);
  return room;
}

// For other requests than these.
void NodeAccounts::TakeReserved(std::map<NodeId, Resources>& room, const std::vector<JobId>& requests) const {
  const auto take = [&](const NodeId& node, const Resources& what) {
    if (auto it = room.find(node); it != room.end()) it->second -= what;
  };
  for (const auto& [id, job] : state_.index.requests()) {
    if (requests.empty() && IsEnding(*job)) {
      for (const auto& [rank, code] : job->exited) take(job->nodes[rank], job->spec.per_node);
    } else if (WaitsForItsNodes(*job) && std::find(requests.begin(), requests.end(), id) == requests.end()) {
      for (const NodeId& node : job->plans.back().nodes) take(node, cluster_.HeldBy(*job, node));
    }
  }
}

Resources NodeAccounts::HeldByStrays(const NodeId& node) const {
  Resources held{0, Bytes{}, 0};
  const auto tasks = state_.observed_tasks.find(node);
  if (tasks == state_.observed_tasks.end()) return held;
  for (const auto& [id, task] : tasks->second) {
    if (!IsLive(task.report.phase())) continue;
    auto found = state_.jobs.find(id.job);
    if (found == state_.jobs.end()) continue;
    const JobRecord& job = found->second;
    const bool counted = cluster_.IsWanted(job, node, id) && !job.exited.contains(id.rank - job.first_rank);
    if (!counted) held += job.spec.per_node;
  }
  for (const TaskId& id : starts_.On(node)) {
    if (const auto job = state_.jobs.find(id.job); job != state_.jobs.end())
      held += job->second.spec.per_node;
  }
  return held;
}

bool NodeAccounts::HasRoomToContinue(const JobRecord& job) const {
  if (!OwnershipOf(job.spec).siding_makes_room) return true;  // its cluster manager makes room
  const std::map<NodeId, Resources> room = RoomBesideOthers(job);
  const std::vector<int> ranks = cluster_.LiveRanks(job);
  return std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
    const auto node = room.find(job.nodes[rank]);
    return node != room.end() && CanThawIn(node->second, job);
  });
}

std::vector<const JobRecord*> NodeAccounts::RunningBeside(const JobRecord& job, const NodeId& node) const {
  std::vector<const JobRecord*> others;
  for (const auto& [id, rank] : state_.index.On(node)) {
    const JobRecord& other = *state_.unfinished.at(id);
    if (id != job.id && !other.in_ram && !other.exited.contains(rank)) others.push_back(&other);
  }
  return others;
}

std::map<NodeId, Resources> NodeAccounts::RoomBesideOthers(const JobRecord& job) const {
  std::map<NodeId, Resources> room;
  for (int rank : cluster_.LiveRanks(job)) {
    const NodeId& node = job.nodes[rank];
    if (!cluster_.IsConnected(node)) continue;
    // One that has shrunk meanwhile has room for what is there already.
    const Resources capacity = cluster_.CapacityOf(node, state_.observed_nodes.at(node));
    room[node] = {std::max(capacity.slots, job.spec.per_node.slots), capacity.memory,
                  std::max(capacity.gpus, job.spec.per_node.gpus)};
  }
  for (auto& [node, free] : room) {
    for (const JobRecord* other : RunningBeside(job, node)) free -= other->spec.per_node;
    free -= HeldByStrays(node);
  }
  TakeLeftTasks(room);
  return room;
}

bool NodeAccounts::IsConsistent() const {
  JobIndex index;
  for (const auto& [id, job] : state_.unfinished) index.Update(*job);
  std::map<NodeId, Account> accounts;
  for (const auto& [node, observed] : state_.observed_nodes) {
    if (const auto account = AccountOf(node)) accounts[node] = *account;
  }
  return index == state_.index && accounts == Accounts();
}

std::optional<NodeAccounts::Account> NodeAccounts::AccountOf(const NodeId& node) const {
  return cluster_.Usable(node) ? std::optional(CountOn(node)) : std::nullopt;
}

NodeAccounts::Account NodeAccounts::CountOn(const NodeId& node) const {
  Account account;
  account.capacity = account.free = cluster_.CapacityOf(node, state_.observed_nodes.at(node));
  for (const auto& [id, rank] : state_.index.On(node)) {
    const JobRecord& job = *state_.unfinished.at(id);
    if (!job.exited.contains(rank)) account.free -= cluster_.HeldBy(job, node);
  }
  account.free -= HeldByStrays(node);
  return account;
}

// The ranks of a request end at nearly the same time. Until all have ended, the nodes of the first are not
// given away: the victims come back at once, and a gang finds all of its nodes.
bool NodeAccounts::IsEnding(const JobRecord& request) const {
  return HoldsNodes(request.state) && !request.exited.empty() &&
         clock_.Now() - request.last_exit < kRanksEndWithin;
}

// The batch queue does not take the place of a job that is only frozen for a while; requests do.
void NodeAccounts::GiveWhatIsFrozen(std::map<NodeId, Resources>& room) const {
  for (const auto& [id, job] : state_.index.unsettled()) {
    if (!job->in_ram || KeepsItsNodes(*job)) continue;
    for (int rank : cluster_.LiveRanks(*job)) {
      const auto node = room.find(job->nodes[rank]);
      const TaskSeen seen = cluster_.Seen(*job, rank);
      if (node == room.end() || seen.phase() == v1::RUNNING) continue;
      node->second += cluster_.HeldBy(*job, node->first);
      node->second -= FrozenHold(*job, seen.report);
    }
  }
}

// And those that no agent has reported: the order to start them may still be on its way.
void NodeAccounts::TakeLeftTasks(std::map<NodeId, Resources>& room) const {
  for (const auto& [id, job] : state_.index.waiting()) {
    if (job->left_on.empty()) continue;
    for (int rank = 0; rank < static_cast<int>(job->last_nodes.size()); ++rank) {
      const NodeId& node = job->last_nodes[rank];
      const auto free = room.find(node);
      if (free == room.end() || !cluster_.IsLeftTask(*job, node, ClusterView::TaskOf(*job, rank))) continue;
      if (cluster_.TaskOn(node, ClusterView::TaskOf(*job, rank)) == nullptr)
        free->second -= job->spec.per_node;
    }
  }
}

}  // namespace siding
