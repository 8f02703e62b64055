#include "controller/engine/act/strays.h"

#include <algorithm>
#include <utility>

#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"

namespace siding {

void Strays::EndStrays() {
  for (const auto& [node, tasks] : state_.observed_tasks) {
    if (!cluster_.IsConnected(node)) continue;
    std::vector<TaskId> forgotten;
    for (const auto& [id, task] : tasks) {
      auto found = state_.jobs.find(id.job);
      if (found == state_.jobs.end()) {
        CallOff(node, task.report);
        continue;
      }
      const JobRecord& job = found->second;
      if (cluster_.IsWanted(job, node, id)) continue;
      if (IsLeftAlone(job, task)) continue;
      if (IsLive(task.report.phase())) {
        EndStray(node, id, OpOf(job) + kOpsPerOrder - 1);
      } else if (!cluster_.IsLeftTask(job, node, id)) {
        v1::ToAgent command;
        command.set_op(OpOf(job) + kOpsPerOrder - 1);
        command.mutable_forget();
        orders_.Send(node, id, std::move(command));
        forgotten.push_back(id);
      }
    }
    // The agent sends nothing in answer to Forget; were it lost, the next Hello would bring the task back.
    for (const TaskId& id : forgotten) {
      accounts_.Touch(node);
      auto& there = observed_.observed_tasks[node];
      const auto task = there.find(id);
      if (task == there.end()) continue;
      size_t& kept = observed_.observed_nodes[node].kept_bytes;
      kept -= std::min(kept, task->second.report.ByteSizeLong());
      there.erase(task);
      orders_.Forget(node, id);
    }
  }
}

void Strays::EndLeftTasks() {
  for (const auto& [id, job] : state_.index.waiting()) {
    if (!OwnershipOf(job->spec).siding_starts || job->left_on.empty()) continue;
    for (int rank = 0; rank < static_cast<int>(job->last_nodes.size()); ++rank) {
      const NodeId& node = job->last_nodes[rank];
      const TaskId task = ClusterView::TaskOf(*job, rank);
      if (!cluster_.IsLeftTask(*job, node, task) || !cluster_.IsConnected(node)) continue;
      if (cluster_.TaskOn(node, task) == nullptr) EndStray(node, task, OpOf(*job) + kOpsPerOrder - 1);
    }
  }
}

void Strays::EndPendingStarts() {
  for (const auto& [node, tasks] : starts_.all()) {
    for (const TaskId& id : tasks) {
      const auto job = state_.jobs.find(id.job);
      if (job != state_.jobs.end()) EndStray(node, id, OpOf(job->second) + kOpsPerOrder - 1);
    }
  }
}

void Strays::EndStray(const NodeId& node, const TaskId& task, int64_t op) {
  v1::ToAgent command;
  command.set_op(op);
  command.mutable_kill()->set_grace_us(0);
  orders_.Send(node, task, std::move(command));
}

bool Strays::IsLeftAlone(const JobRecord& job, const ObservedTask& task) const {
  const bool later = IdOf(task.report).incarnation > job.incarnation;
  // A cluster manager ends its tasks itself; what siding does not know may be a user's work.
  if (!OwnershipOf(job.spec).siding_ends || task.report.has_spec())
    return later || IsLive(task.report.phase());
  // Started after the journal was copied: the job may still be found there.
  return later && job.from_copy && startup_.IsCatchingUp(clock_.Now());
}

// A task of a job that the journal does not know is not ended: it may be a user's work, and the journal may
// be wrong. If it waits for an order it would wait for ever, so it continues as if the order was withdrawn.
void Strays::CallOff(const NodeId& node, const v1::TaskReport& report) {
  if (report.has_spec() || startup_.IsCatchingUp(clock_.Now()))
    return;  // the cluster manager decides about its own tasks
  v1::ToAgent command;
  switch (report.phase()) {
    case v1::SUSPENDED:
      command.set_op(report.failed_op() + 1);
      command.mutable_resume();
      break;
    case v1::RUNNING:
    case v1::DUMPING:
    case v1::PREPARED:
      if (report.op() == 0) return;
      command.set_op(report.op());
      command.mutable_abort();
      break;
    default:
      return;
  }
  orders_.SendTo(node, IdOf(report), report.task().cluster(), std::move(command));
}

}  // namespace siding
