// What is known of a task, from what its node's agent said last.
#include "controller/engine/impl.h"

namespace siding {

TaskId IdOf(const v1::TaskReport& report) {
  return TaskId{JobId(report.task().job()), report.task().incarnation(), report.task().rank()};
}

bool IsLive(v1::TaskPhase phase) {
  switch (phase) {
    case v1::LAUNCHING:
    case v1::RUNNING:
    case v1::SUSPENDED:
    case v1::DUMPING:
    case v1::PREPARED:
    case v1::RESTORING:
      return true;
    default:
      return false;
  }
}

bool IsGone(v1::TaskPhase phase) { return phase != v1::TASK_PHASE_UNSPECIFIED && !IsLive(phase); }

const ObservedTask* Engine::Impl::TaskOn(const NodeId& node, const TaskId& id) const {
  const auto tasks = state_.observed_tasks.find(node);
  if (tasks == state_.observed_tasks.end()) return nullptr;
  const auto task = tasks->second.find(id);
  return task == tasks->second.end() ? nullptr : &task->second;
}

bool Engine::Impl::IsConnected(const NodeId& node) const {
  const auto observed = state_.observed_nodes.find(node);
  return observed != state_.observed_nodes.end() && observed->second.connected;
}

TaskSeen Engine::Impl::Seen(const JobRecord& job, int rank) const {
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
  if (!IsLost(node)) return {task != nullptr, IsConnected(node), said.report, said.progress};
  // As its agent would say it after a start with another boot id.
  if (!IsGone(said.report.phase())) return {true, true, kLost.report, kLost.progress};
  return {true, true, said.report, said.progress};
}

std::vector<int> Engine::Impl::LiveRanks(const JobRecord& job) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < job.spec.nodes; ++rank) {
    if (!job.exited.contains(rank)) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace siding
