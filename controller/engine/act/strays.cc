#include "controller/engine/act/strays.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"

namespace siding {
namespace {

constexpr size_t kMostStraysNamed = 4;  // in one line
// Its name among those of its agent's tasks: other clusters may have a task of its number on the same
// machine.
std::string FolderOf(const v1::TaskReport& report) {
  const int64_t cluster = report.task().cluster();
  return absl::StrCat(ToString(IdOf(report)), cluster == 0 ? "" : ".",
                      cluster == 0 ? "" : absl::StrCat(absl::Hex(cluster, absl::kZeroPad16)));
}

constexpr Duration kTellOfStraysAgain = std::chrono::minutes(1);

}  // namespace

void Strays::EndStrays() {
  for (const auto& [node, tasks] : state_.observed_tasks) {
    if (!cluster_.IsConnected(node)) continue;
    TellOfUnknown(node, tasks);
    std::vector<TaskId> forgotten;
    for (const auto& [id, task] : tasks) {
      auto found = state_.jobs.find(id.job);
      if (found == state_.jobs.end()) {
        CallOff(node, task.report);
        continue;
      }
      const JobRecord& job = found->second;
      CallOffForgotten(node, job, id, task.report);
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

// Nobody looks for what no job shows. Once in the life of a controller: a new one tells it again, as agents
// report it again.
void Strays::TellOfUnknown(const NodeId& node, const std::map<TaskId, ObservedTask>& tasks) {
  const Time now = clock_.Now();
  if (startup_.IsCatchingUp(now)) return;
  std::vector<TaskId> strays;
  for (const auto& [id, task] : tasks) {
    if (IsStray(state_, id, task.report)) strays.push_back(id);
  }
  if (strays.empty()) return;
  StraysTold& told = told_[node];
  if (now - told.at < kTellOfStraysAgain) return;
  std::vector<TaskId> news;
  std::set_difference(strays.begin(), strays.end(), told.tasks.begin(), told.tasks.end(),
                      std::back_inserter(news));
  told.tasks = std::move(strays);
  if (news.empty()) return;
  told.at = now;
  const size_t more = news.size() - std::min(news.size(), kMostStraysNamed);
  news.resize(news.size() - more);
  const std::string names = absl::StrJoin(
      news, ", ", [](std::string* out, const TaskId& id) { absl::StrAppend(out, ToString(id)); });
  recorder_.Record(JobId(), Noted{absl::StrCat("node ", node.value(),
                                               news.size() + more == 1
                                                   ? " has a task of a job that the journal does not know, "
                                                   : " has tasks of jobs that the journal does not know, ",
                                               names, more == 0 ? "" : absl::StrCat(" and ", more, " others"),
                                               ": it is left alone, what it uses is not counted, and nobody "
                                               "continues it; to end it, there: pkill -KILL -P "
                                               "\"$(pgrep -d, -f '[s]iding-shim .*/tasks/",
                                               FolderOf(tasks.at(news.front()).report),
                                               // Not 5.1.10, nor another cluster's, for 5.1.1.
                                               "([^0-9.]|$)')\"")});
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

// Of a cluster manager's job more tasks may live than those that stand for it now. One that was being dumped
// when they did hears of nothing any more, and would wait for its peers.
void Strays::CallOffForgotten(const NodeId& node, const JobRecord& job, const TaskId& id,
                              const v1::TaskReport& report) {
  // What leaves has nobody to wait for: its manager removes it.
  const bool waits = report.phase() == v1::DUMPING || (report.phase() == v1::PREPARED && !report.leaves());
  const bool is_heard_of = HoldsNodes(job.state) && cluster_.IsPlacedOn(node, id);
  if (!waits || report.op() == 0 || is_heard_of || OwnershipOf(job.spec).siding_starts ||
      startup_.IsCatchingUp(clock_.Now()))
    return;
  v1::ToAgent command;
  command.set_op(report.op());
  command.mutable_abort();
  orders_.Send(node, id, std::move(command));
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
