// What is free on each node. It is asked for after almost every event, so it is kept, and only the nodes that
// something happened on are looked at again.
#include <algorithm>
#include <utility>

#include "controller/engine/impl.h"

namespace siding {
namespace {

constexpr Duration kRanksEndWithin = std::chrono::seconds(2);

// What a frozen task keeps of its node: its memory (as measured, or as it asked), and GPUs that it has not
// been seen to leave.
Resources FrozenHold(const JobRecord& job, const v1::TaskReport& task) {
  return Resources{0, std::max(Bytes{task.memory()}, job.spec.per_node.memory), task.gpus_size()};
}

}  // namespace

bool Engine::Impl::Usable(const NodeId& node) const {
  if (!IsHeard(node)) return false;
  const auto managed = state_.queue.nodes.find(node);
  if (managed != state_.queue.nodes.end() && !managed->second.usable) return false;
  auto record = state_.nodes.find(node);
  return record == state_.nodes.end() || !record->second.cordoned;
}

// ---- The account of each node. ----

void Engine::Impl::TouchAll() {
  for (const auto& [node, observed] : state_.observed_nodes) stale_.insert(node);
}

void Engine::Impl::TouchNodesOf(JobId id) {
  const auto job = state_.jobs.find(id);
  if (job != state_.jobs.end()) stale_.insert(job->second.nodes.begin(), job->second.nodes.end());
}

void Engine::Impl::TouchTasksOf(JobId job) {
  for (const auto& [node, tasks] : state_.observed_tasks) {
    const auto task = tasks.lower_bound(TaskId{job, 0, 0});
    if (task != tasks.end() && task->first.job == job) stale_.insert(node);
  }
}

// Which of its tasks a job is accounted for by what it holds follows from this; the others are strays.
std::pair<bool, int> Engine::Impl::StandingOf(JobId id) const {
  const auto job = state_.jobs.find(id);
  return job == state_.jobs.end() ? std::pair(false, -1)
                                  : std::pair(HoldsNodes(job->second.state), job->second.incarnation);
}

std::optional<Engine::Impl::Account> Engine::Impl::AccountOf(const NodeId& node) const {
  if (!Usable(node)) return std::nullopt;
  Account account;
  account.capacity = account.free = CapacityOf(node, state_.observed_nodes.at(node));
  for (const auto& [id, rank] : state_.index.On(node)) {
    const JobRecord& job = *state_.unfinished.at(id);
    if (!job.exited.contains(rank)) account.free -= HeldBy(job, node);
  }
  account.free -= HeldByStrays(node);
  return account;
}

const std::map<NodeId, Engine::Impl::Account>& Engine::Impl::Accounts() const {
  for (const NodeId& node : std::exchange(stale_, {})) {
    if (const auto account = AccountOf(node)) {
      accounts_[node] = *account;
    } else {
      accounts_.erase(node);
    }
  }
  return accounts_;
}

bool Engine::Impl::IsConsistent() const {
  JobIndex index;
  for (const auto& [id, job] : state_.unfinished) index.Update(*job);
  std::map<NodeId, Account> accounts;
  for (const auto& [node, observed] : state_.observed_nodes) {
    if (const auto account = AccountOf(node)) accounts[node] = *account;
  }
  return index == state_.index && accounts == Accounts();
}

std::map<NodeId, Resources> Engine::Impl::Capacities() const {
  std::map<NodeId, Resources> capacities;
  for (const auto& [id, account] : Accounts())
    capacities.emplace_hint(capacities.end(), id, account.capacity);
  return capacities;
}

// ---- What is made of it. ----

// The ranks of a request end together, if not in the same instant. Until they have, the nodes of the first
// are not given away: those who left them come back all at once, and a gang finds its nodes.
bool Engine::Impl::IsEnding(const JobRecord& request) const {
  return HoldsNodes(request.state) && !request.exited.empty() &&
         clock_.Now() - request.last_exit < kRanksEndWithin;
}

std::map<NodeId, Resources> Engine::Impl::Room(const std::vector<JobId>& requests) const {
  std::map<NodeId, Resources> room;
  for (const auto& [id, account] : Accounts()) room.emplace_hint(room.end(), id, account.free);
  const auto take = [&](const NodeId& node, const Resources& what) {
    if (auto it = room.find(node); it != room.end()) it->second -= what;
  };
  for (const auto& [id, job] : state_.index.requests()) {
    if (requests.empty() && IsEnding(*job)) {
      for (const auto& [rank, code] : job->exited) take(job->nodes[rank], job->spec.per_node);
    } else if (WaitsForItsNodes(*job) && std::find(requests.begin(), requests.end(), id) == requests.end()) {
      for (const NodeId& node : job->plans.back().nodes) take(node, HeldBy(*job, node));
    }
  }
  if (!requests.empty()) GiveWhatIsFrozen(room);
  TakeLeftTasks(room);
  TakeOthers(room);
  return room;
}

// The batch queue does not take the place of a job that is only frozen for a while; requests do.
void Engine::Impl::GiveWhatIsFrozen(std::map<NodeId, Resources>& room) const {
  for (const auto& [id, job] : state_.index.unsettled()) {
    if (!job->in_ram) continue;
    for (int rank : LiveRanks(*job)) {
      const auto node = room.find(job->nodes[rank]);
      const TaskSeen seen = Seen(*job, rank);
      if (node == room.end() || seen.phase() == v1::RUNNING) continue;
      node->second += HeldBy(*job, node->first);
      node->second -= FrozenHold(*job, seen.report);
    }
  }
}

// Processes that should be gone and are not yet, or that may be about to begin: nothing is granted before it
// is observed free.
Resources Engine::Impl::HeldByStrays(const NodeId& node) const {
  Resources held{0, Bytes{}, 0};
  const auto tasks = state_.observed_tasks.find(node);
  if (tasks == state_.observed_tasks.end()) return held;
  for (const auto& [id, task] : tasks->second) {
    if (!IsLive(task.report.phase())) continue;
    auto found = state_.jobs.find(id.job);
    if (found == state_.jobs.end()) continue;
    const JobRecord& job = found->second;
    const bool counted = IsWanted(job, node, id) && !job.exited.contains(id.rank - job.first_rank);
    if (!counted) held += job.spec.per_node;
  }
  if (const auto starts = may_start_.find(node); starts != may_start_.end()) {
    for (const TaskId& id : starts->second) {
      if (const auto job = state_.jobs.find(id.job); job != state_.jobs.end())
        held += job->second.spec.per_node;
    }
  }
  return held;
}

// And those of which nobody has heard: the order to start them may still be on its way.
void Engine::Impl::TakeLeftTasks(std::map<NodeId, Resources>& room) const {
  for (const auto& [id, job] : state_.index.waiting()) {
    if (job->left_on.empty()) continue;
    for (int rank = 0; rank < static_cast<int>(job->last_nodes.size()); ++rank) {
      const NodeId& node = job->last_nodes[rank];
      const auto free = room.find(node);
      if (free == room.end() || !IsLeftTask(*job, node, TaskOf(*job, rank))) continue;
      if (TaskOn(node, TaskOf(*job, rank)) == nullptr) free->second -= job->spec.per_node;
    }
  }
}

}  // namespace siding
