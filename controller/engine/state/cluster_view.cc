#include "controller/engine/state/cluster_view.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"
#include "controller/wire/wire.h"

namespace siding {
namespace {
// Attempts at a checkpoint that was to count, and that some rank could not commit, while all ranks are there.
constexpr int kCommitAttempts = 3;
// As docs/results/gang.md has it for two to eight ranks; before it has been seen of a job.
constexpr Duration kUsualWait = std::chrono::milliseconds(50);
}  // namespace

const ObservedTask* ClusterView::TaskOn(const NodeId& node, const TaskId& id) const {
  const auto tasks = state_.observed_tasks.find(node);
  if (tasks == state_.observed_tasks.end()) return nullptr;
  const auto task = tasks->second.find(id);
  return task == tasks->second.end() ? nullptr : &task->second;
}

bool ClusterView::IsConnected(const NodeId& node) const {
  const auto observed = state_.observed_nodes.find(node);
  return observed != state_.observed_nodes.end() && observed->second.connected;
}

bool ClusterView::IsHeard(const NodeId& node) const {
  const auto observed = state_.observed_nodes.find(node);
  return observed != state_.observed_nodes.end() && observed->second.connected && !observed->second.silent;
}

TaskSeen ClusterView::Seen(const JobRecord& job, int rank) const {
  static const ObservedTask kNothing;
  static const ObservedTask kLost = [] {
    ObservedTask task;
    task.report.set_phase(v1::LOST);
    task.report.set_error("its node is lost");
    return task;
  }();
  if (static_cast<size_t>(rank) >= job.nodes.size())
    return {false, false, kNothing.report, kNothing.progress};
  const NodeId& node = job.nodes[rank];
  const ObservedTask* task = TaskOn(node, TaskOf(job, rank));
  const ObservedTask& said = task != nullptr ? *task : kNothing;
  if (!state_.IsLost(node)) return {task != nullptr, IsConnected(node), said.report, said.progress};
  // As its agent would report it after a reboot.
  if (!IsGone(said.report.phase())) return {true, true, kLost.report, kLost.progress};
  return {true, true, said.report, said.progress};
}

std::vector<int> ClusterView::LiveRanks(const JobRecord& job) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < job.spec.nodes; ++rank) {
    if (!job.exited.contains(rank)) ranks.push_back(rank);
  }
  return ranks;
}

bool ClusterView::AreHeard(const JobRecord& job) const {
  const std::vector<int> ranks = LiveRanks(job);
  return std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return IsHeard(job.nodes[rank]); });
}

bool ClusterView::IsSeenRunning(const JobRecord& job) const {
  const std::vector<int> ranks = LiveRanks(job);
  return std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
    const TaskSeen seen = Seen(job, rank);
    return seen.connected && seen.known && seen.phase() == v1::RUNNING;
  });
}

bool ClusterView::IsNotEndedYet(const JobRecord& job) const {
  if (!HasBegun(job) && !job.beginning) return false;
  const std::vector<int> ranks = LiveRanks(job);
  return !ranks.empty() && std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
    const TaskSeen seen = Seen(job, rank);
    if (seen.phase() == v1::RUNNING) return true;
    const bool begins = seen.phase() == v1::LAUNCHING || seen.phase() == v1::RESTORING;
    return begins && !HasBegun(job) && IsAfterItsStart(job, seen.report.op());
  });
}

bool ClusterView::HaveAllSaved(const JobRecord& job) const {
  const std::vector<int> ranks = LiveRanks(job);
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](int rank) { return Seen(job, rank).phase() == v1::SAVED; });
}

Duration ClusterView::RanksWait(const JobRecord& job) const {
  return KeepsConnections(job) ? job.ranks_waited.value_or(kUsualWait) : Duration(0);
}

bool ClusterView::HoldsTogether(const JobRecord& job) const {
  return job.current.event == JobEvent::kOrderDump && KeepsConnections(job);
}

bool ClusterView::KeepsConnections(const JobRecord& job) const {
  if (job.nodes.size() < 2) return false;
  const std::vector<int> ranks = LiveRanks(job);
  // What a cluster manager's job was submitted with need not be what its step was started with.
  return job.spec.keep_connections || std::any_of(ranks.begin(), ranks.end(), [&](int rank) {
           return Seen(job, rank).report.has_endpoint();
         });
}

v1::DumpBarrier ClusterView::BarrierOf(const JobRecord& job) const {
  v1::DumpBarrier all = v1::BARRIER_RUN_ON;
  for (const int rank : LiveRanks(job)) {
    const v1::TaskReport& report = Seen(job, rank).report;
    v1::DumpBarrier its = v1::BARRIER_NONE;
    if (IsOfOrder(job, report.op()) && report.phase() == v1::DUMPING) its = report.barrier();
    // An agent that knows no barriers keeps it stopped until all is decided.
    if (IsOfOrder(job, report.op()) && report.phase() == v1::PREPARED) its = v1::BARRIER_RUN_ON;
    all = std::min(all, its);
  }
  return all;
}

CommitView ClusterView::CommitOf(const JobRecord& job) const {
  const std::vector<int> ranks = LiveRanks(job);
  const bool stays = job.current.keep_running;
  CommitView view;
  bool behind = false;  // a rank that is whole has no image
  bool ran_on = false;  // one has, and was to leave
  int whole_ranks = 0, settled = 0;
  for (int rank : ranks) {
    const TaskSeen seen = Seen(job, rank);
    const v1::TaskPhase phase = seen.phase();
    const bool whole = phase == v1::RUNNING || phase == v1::SUSPENDED;
    const bool committed = HasCommitted(job, seen.report);
    const bool left = phase == v1::CHECKPOINTED;
    const bool waits = phase == v1::PREPARED && seen.report.barrier() == v1::BARRIER_LEAVE;
    const bool ended = !stays && committed && (phase == v1::EXITED || phase == v1::LOST);
    const bool done = stays ? seen.known && IsLive(phase) && committed : left || ended;
    if (ended) view.ended_in_image.push_back(rank);
    view.all_done &= done;
    view.all_whole &= whole;
    view.all_known &= seen.known;
    view.has_left |= left;
    view.are_apart |= left || waits;
    view.may_leave &= left || ended || (waits && committed && IsHeard(job.nodes[rank]));
    settled += left || ended || (waits && committed);
    whole_ranks += whole;
    behind |= whole && !done;
    ran_on |= whole && committed && !stays;
    if (const int64_t failed = seen.report.failed_op() - OpOf(job) + 1; failed > view.attempts) {
      view.attempts = failed;
      view.rank = rank;
      view.why = absl::StrCat(On(job, rank), ": ", seen.report.error());
    }
  }
  const bool are_in_images = view.has_left || (view.are_apart && settled == std::ssize(ranks));
  if (!view.ended_in_image.empty() && !are_in_images) {
    view.ended_in_image.clear();
    view.all_done = view.may_leave = false;
  }
  // Ranks that run on are not dumped one after another: their images would be of different moments.
  const bool peers_run_on = stays && (ranks.size() > 1 || DumpsTogether(job)) && behind;
  const bool ran_on_together = ran_on && whole_ranks > 1;
  view.failed = !view.has_left && !view.may_leave && view.all_known &&
                (peers_run_on || ran_on_together || view.attempts >= kCommitAttempts);
  if (view.failed && view.why.empty()) view.why = "the agent of a rank went away before its image counted";
  return view;
}

bool ClusterView::IsKnown(const NodeId& node) const {
  const auto among = [&](const std::vector<NodeId>& nodes) {
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  };
  return state_.observed_nodes.contains(node) || state_.nodes.contains(node) ||
         state_.queue.nodes.contains(node) || state_.given_up.contains(node) ||
         !state_.index.On(node).empty() ||
         std::any_of(
             state_.index.waiting().begin(), state_.index.waiting().end(),
             [&](const auto& job) { return among(job.second->left_on) || among(job.second->target); }) ||
         std::any_of(state_.checkpoints.begin(), state_.checkpoints.end(),
                     [&](const auto& checkpoint) { return among(checkpoint.second.nodes); });
}

std::vector<NodeId> ClusterView::TargetOf(const JobRecord& job) const {
  const bool lost = std::any_of(job.target.begin(), job.target.end(),
                                [&](const NodeId& node) { return state_.IsLost(node); });
  return lost ? std::vector<NodeId>() : job.target;
}

bool ClusterView::IsPlacedOn(const NodeId& node, const TaskId& task) const {
  const auto found = state_.jobs.find(task.job);
  if (found == state_.jobs.end()) return false;
  const JobRecord& job = found->second;
  const int64_t rank = int64_t{task.rank} - job.first_rank;
  return task.incarnation == job.incarnation && rank >= 0 && rank < std::ssize(job.nodes) &&
         job.nodes[static_cast<size_t>(rank)] == node;
}

bool ClusterView::IsWanted(const JobRecord& job, const NodeId& node, const TaskId& task) const {
  // A cluster manager's job may have more tasks than those that stand for it.
  if (!OwnershipOf(job.spec).siding_starts)
    return HoldsNodes(job.state) && task.incarnation == job.incarnation;
  return IsPlacedOn(node, task);
}

bool ClusterView::IsLeftTask(const JobRecord& job, const NodeId& node, const TaskId& task) {
  return !IsTerminal(job.state) && task.incarnation == job.incarnation &&
         std::find(job.left_on.begin(), job.left_on.end(), node) != job.left_on.end();
}

bool ClusterView::HasLeftTasks(const JobRecord& job) const {
  if (HoldsNodes(job.state)) return false;  // it has been started again: holding it back would undo nothing
  for (const auto& [node, jobs] : state_.given_up) {
    if (jobs.contains(job.id) && !state_.IsLost(node)) return true;
  }
  for (int rank = 0; rank < static_cast<int>(job.last_nodes.size()); ++rank) {
    const NodeId& node = job.last_nodes[rank];
    if (!IsLeftTask(job, node, TaskOf(job, rank)) || state_.IsLost(node)) continue;
    const ObservedTask* task = TaskOn(node, TaskOf(job, rank));
    if (task == nullptr || !IsGone(task->report.phase())) return true;
  }
  return false;
}

bool ClusterView::StartIsOnItsWay(const JobRecord& job) const {
  if (!IsBeginning(job.state)) return false;
  const Ownership& ownership = OwnershipOf(job.spec);
  if (ownership.siding_starts) return !job.from_copy;
  // An agent has reported it, or it would not have been placed. The manager says when it is over; but the
  // next pod of one that goes on waits until this one is seen gone.
  return !ownership.siding_ends;
}

std::vector<NodeId> ClusterView::WhereTasksMayLive(const JobRecord& job) const {
  const bool starting = StartIsOnItsWay(job);
  std::vector<NodeId> nodes;
  if (!HoldsNodes(job.state)) return nodes;
  for (int rank : LiveRanks(job)) {
    const ObservedTask* task = TaskOn(job.nodes[rank], TaskOf(job, rank));
    const bool gone = task != nullptr && IsGone(task->report.phase());
    const bool never_there = task == nullptr && !starting && IsConnected(job.nodes[rank]);
    if (!gone && !never_there) nodes.push_back(job.nodes[rank]);
  }
  return nodes;
}

bool ClusterView::InUse(const NodeId& node) const {
  if (!IsHeard(node)) return false;
  const auto managed = state_.queue.nodes.find(node);
  if (managed != state_.queue.nodes.end() && !managed->second.usable) return false;
  auto record = state_.nodes.find(node);
  return record == state_.nodes.end() || !record->second.cordoned;
}

bool ClusterView::Usable(const NodeId& node) const {
  if (!InUse(node)) return false;
  const ObservedNode& observed = state_.observed_nodes.at(node);
  return !observed.faulty && (observed.starts.count == 0 || !IsTried(node));
}

bool ClusterView::AreUsable(const std::vector<NodeId>& nodes) const {
  return std::all_of(nodes.begin(), nodes.end(), [this](const NodeId& node) { return Usable(node); });
}

bool ClusterView::IsTried(const NodeId& node) const {
  const auto& jobs = state_.index.On(node);
  return std::any_of(jobs.begin(), jobs.end(), [&](const auto& job) {
    return state_.unfinished.at(job.first)->state == JobState::kStarting;
  });
}

Resources ClusterView::CapacityOf(const NodeId& node, const ObservedNode& observed) const {
  const auto managed = state_.queue.nodes.find(node);
  return managed == state_.queue.nodes.end() ? FromProto(observed.hello.capacity())
                                             : managed->second.capacity;
}

Resources ClusterView::HeldBy(const JobRecord& job, const NodeId& node) const {
  const auto observed = state_.observed_nodes.find(node);
  return IsKnownFromQueueOnly(job) && observed != state_.observed_nodes.end()
             ? CapacityOf(node, observed->second)
             : job.spec.per_node;
}

bool ClusterView::HasSharedTier(const NodeId& node) const {
  const auto observed = state_.observed_nodes.find(node);
  return observed != state_.observed_nodes.end() &&
         FromProto(observed->second.heartbeat.shared()).dump.known();
}

NodeId ClusterView::NodeWithImage(const CheckpointRecord& checkpoint, int rank, Tier tier) const {
  const NodeId& own = checkpoint.nodes[rank];
  if (tier == Tier::kLocal || IsHeard(own)) return own;
  NodeId any = own;
  for (const auto& [other, observed] : state_.observed_nodes) {
    if (!IsHeard(other)) continue;
    if (HasSharedTier(other)) return other;
    any = other;
  }
  return any;
}

bool ClusterView::IsBeingWritten(const CheckpointRecord& checkpoint, int rank) const {
  const NodeId& node = checkpoint.nodes[rank];
  const TaskId id{checkpoint.job, checkpoint.incarnation, checkpoint.first_rank + rank};
  const ObservedTask* task = TaskOn(node, id);
  if (task == nullptr) {
    // A controller that has just started has no report of it yet.
    const JobRecord& job = state_.jobs.at(checkpoint.job);
    return !IsConnected(node) && (IsPlacedOn(node, id) || IsLeftTask(job, node, id));
  }
  const v1::TaskPhase phase = task->report.phase();
  return phase == v1::DUMPING || phase == v1::PREPARED;
}

Bytes ClusterView::LastImage(const JobRecord& job) const {
  if (job.checkpoints.empty()) return Bytes{0};
  return Bytes{state_.checkpoints.at(job.checkpoints.back()).bytes.value / job.spec.nodes};
}

Bytes ClusterView::ImageOf(const JobRecord& job) const {
  Bytes sum;
  for (int rank : LiveRanks(job)) sum += ImageOf(job, rank);
  return sum;
}

Bytes ClusterView::ImageOf(const JobRecord& job, int rank) const {
  const v1::TaskReport& report = Seen(job, rank).report;
  return std::max({Bytes{report.memory() + report.gpu_memory()}, LastImage(job), Bytes{1}});
}

bool ClusterView::CannotBeCheckpointed(const JobRecord& job) const {
  const std::vector<int> ranks = LiveRanks(job);
  return std::any_of(ranks.begin(), ranks.end(), [&](int rank) {
    const v1::TaskReport& report = Seen(job, rank).report;
    return !report.cannot_checkpoint().empty() || !report.cannot_drain().empty();
  });
}

Duration ClusterView::TimeToRestore(const JobRecord& job) const {
  const CheckpointRecord* const image = NewestImage(state_, job);
  if (image == nullptr || image->nodes.empty()) return Duration(0);
  const Bytes part{image->bytes.value / std::ssize(image->nodes)};
  Duration longest{0};
  for (const int rank : LiveRanks(job)) {
    const auto node = state_.observed_nodes.find(job.nodes[rank]);
    if (node == state_.observed_nodes.end()) return Duration(0);
    const v1::Heartbeat& heartbeat = node->second.heartbeat;
    const Rate read = FromProto(image->tier == Tier::kLocal ? heartbeat.local() : heartbeat.shared()).restore;
    if (!read.known()) return Duration(0);
    const Rate refill = FromProto(heartbeat.gpu()).restore;
    const Bytes on_gpus{Seen(job, rank).report.gpu_memory()};
    const bool refills = on_gpus > Bytes{} && refill.known();
    longest = std::max(longest, read.For(part) + (refills ? refill.For(on_gpus) : Duration(0)));
  }
  return longest;
}

Duration ClusterView::TimeToDump(const JobRecord& job, Tier tier) const {
  Duration longest{0};
  for (int rank : LiveRanks(job)) {
    const auto node = state_.observed_nodes.find(job.nodes[rank]);
    if (node == state_.observed_nodes.end()) return Duration(0);
    const v1::Heartbeat& heartbeat = node->second.heartbeat;
    const Rate dump = FromProto(tier == Tier::kLocal ? heartbeat.local() : heartbeat.shared()).dump;
    const Rate drain = FromProto(heartbeat.gpu()).dump;
    const v1::TaskReport& report = Seen(job, rank).report;
    if (!dump.known()) return Duration(0);
    Duration takes = dump.For(Bytes{report.memory() + report.gpu_memory()});
    if (report.gpu_memory() > 0 && drain.known()) takes += drain.For(Bytes{report.gpu_memory()});
    longest = std::max(longest, takes);
  }
  return longest + RanksWait(job);
}

Duration ClusterView::TimeToMove(const JobRecord& job) const {
  Duration longest{0};
  for (int rank : LiveRanks(job)) {
    auto node = state_.observed_nodes.find(job.nodes[rank]);
    if (node == state_.observed_nodes.end()) return Duration(0);
    const TierRates rates = FromProto(node->second.heartbeat.shared());
    if (!rates.dump.known() || !rates.restore.known()) return Duration(0);
    const Bytes size{Seen(job, rank).report.memory()};
    longest = std::max(longest, rates.dump.For(size) + rates.restore.For(size));
  }
  return longest + RanksWait(job);
}

}  // namespace siding
