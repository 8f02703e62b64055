#include "controller/platform/kubernetes/speak/spoken_pods.h"

#include <algorithm>
#include <csignal>

#include "controller/wire/task.h"
#include "controller/wire/wire.h"
#include "google/protobuf/util/message_differencer.h"

namespace siding::kubernetes {
namespace {

constexpr int kEndedByTerm = 128 + SIGTERM;
constexpr char kOnlyEvicted[] = "pods are only evicted in this cluster";

bool IsSame(v1::TaskReport a, const v1::TaskReport& b) {
  a.set_version(b.version());
  return google::protobuf::util::MessageDifferencer::Equals(a, b);
}

std::string WhyNot(const PodTask& task) { return task.not_saved.empty() ? kOnlyEvicted : task.not_saved; }

}  // namespace

void SpokenPods::Introduce(const NodeId& node, const std::vector<PodTask>& tasks, v1::Hello& hello) {
  for (const PodTask& task : tasks) {
    if (task.node != node || forgotten_.contains(task.id)) continue;
    Task& told = tasks_[task.id];
    told = {node, ReportOf(task), task.leaves};
    told.report.set_version(++version_);
    *hello.add_tasks() = told.report;
  }
}

v1::TaskReport SpokenPods::ReportOf(const PodTask& task) const {
  v1::TaskReport report;
  *report.mutable_task() = RefOf(task.id);
  report.set_phase(task.succeeded ? v1::EXITED : task.started ? v1::RUNNING : v1::LAUNCHING);
  if (task.was_ended()) SetEnded(report);
  // Until its end is on its way, the order can be taken back (Abort).
  if (const auto order = unwanted_.find(task.id); order != unwanted_.end() && !task.leaves && !task.is_over())
    report.set_op(order->second);
  report.set_memory(task.spec.per_node.memory.value);
  if (task.started) report.set_started_us(ToMicros(*task.started));
  if (task.succeeded) {
    report.set_exit_code(*task.succeeded ? 0 : 1);
    report.set_own_end(!unwanted_.contains(task.id));
  }
  report.set_pod_uid(task.uid);
  report.set_cannot_checkpoint(WhyNot(task));
  *report.mutable_spec() = ToProto(task.spec);
  return report;
}

void SpokenPods::SetEnded(v1::TaskReport& report) const {
  const bool as_ordered = unwanted_.contains(IdOf(report));
  report.set_phase(as_ordered ? v1::EXITED : v1::LOST);
  report.set_exit_code(as_ordered ? kEndedByTerm : 0);
}

void SpokenPods::Tell(Task& task, AgentEvents& events) {
  task.report.set_version(++version_);
  v1::FromAgent message;
  *message.mutable_report() = task.report;
  events.OnMessage(task.node, message);
}

void SpokenPods::Observe(const std::vector<PodTask>& tasks, const SpeaksFor& speaks_for,
                         AgentEvents& events) {
  std::set<TaskId> there;
  for (const PodTask& task : tasks) {
    there.insert(task.id);
    if (forgotten_.contains(task.id) || !speaks_for(task.node)) continue;
    v1::TaskReport report = ReportOf(task);
    Task& told = tasks_[task.id];
    report.set_failed_op(told.report.failed_op());
    report.set_error(told.report.error());
    told.leaves = task.leaves;
    if (told.node == task.node && IsSame(report, told.report)) continue;
    told = {task.node, std::move(report), task.leaves};
    Tell(told, events);
  }
  for (auto& [id, task] : tasks_) {
    if (there.contains(id) || IsGone(task.report.phase())) continue;
    SetEnded(task.report);
    task.report.set_op(0);
    if (speaks_for(task.node)) Tell(task, events);
  }
  std::erase_if(forgotten_, [&](const TaskId& id) { return !there.contains(id); });
}

void SpokenPods::Obey(const NodeOrder& order, AgentEvents& events) {
  const auto& [node, command] = order;
  const TaskId id = IdOf(command.task());
  const auto found = tasks_.find(id);
  switch (command.what_case()) {
    case v1::ToAgent::kKill:
      unwanted_[id] = command.op();
      if (found != tasks_.end()) {
        if (IsGone(found->second.report.phase())) {
          Tell(found->second, events);
        } else if (!found->second.leaves) {
          found->second.report.set_op(command.op());
          Tell(found->second, events);
        }
      } else {
        Task gone{node, {}};
        *gone.report.mutable_task() = RefOf(id);
        gone.report.set_phase(v1::LOST);
        Tell(gone, events);
      }
      return;
    case v1::ToAgent::kForget:
      if (found != tasks_.end() && IsGone(found->second.report.phase())) {
        tasks_.erase(found);
        forgotten_.insert(id);
      }
      unwanted_.erase(id);
      return;
    case v1::ToAgent::kAbort:
      if (found != tasks_.end() && !found->second.leaves) TakeBack(found->second, id, events);
      return;
    case v1::ToAgent::kCommit:
    case v1::ToAgent::kWelcome:
      return;
    default:
      if (found == tasks_.end()) return;
      found->second.report.set_failed_op(command.op());
      found->second.report.set_error(found->second.report.cannot_checkpoint());
      Tell(found->second, events);
  }
}

void SpokenPods::TakeBack(Task& task, const TaskId& id, AgentEvents& events) {
  if (unwanted_.erase(id) == 0 || IsGone(task.report.phase())) return;
  task.report.set_op(0);
  Tell(task, events);
}

void SpokenPods::Refuse(const std::string& uid, const std::string& why, AgentEvents& events) {
  for (auto& [id, task] : tasks_) {
    const auto order = unwanted_.find(id);
    if (task.report.pod_uid() != uid || order == unwanted_.end() || task.leaves) continue;
    if (task.report.failed_op() == order->second && task.report.error() == why) continue;
    task.report.set_failed_op(order->second);
    task.report.set_error(why);
    Tell(task, events);
  }
}

void SpokenPods::AddEvictions(const std::vector<PodTask>& tasks, const SpeaksFor& speaks_for,
                              std::vector<Eviction>& evictions) const {
  for (const PodTask& task : tasks) {
    if (unwanted_.contains(task.id) && !task.is_over() && speaks_for(task.node))
      evictions.push_back({task.id.job, task.pod, task.uid, false});
  }
}

bool SpokenPods::IsUnwanted(const std::string& uid, const SpeaksFor& speaks_for) const {
  return std::any_of(unwanted_.begin(), unwanted_.end(), [&](const auto& order) {
    const auto task = tasks_.find(order.first);
    return task != tasks_.end() && task->second.report.pod_uid() == uid && speaks_for(task->second.node);
  });
}

void SpokenPods::AddTo(std::map<NodeId, v1::FromAgent>& beats) const {
  for (const auto& [id, task] : tasks_) {
    const auto beat = beats.find(task.node);
    if (beat != beats.end()) *beat->second.mutable_heartbeat()->add_tasks() = task.report;
  }
}

}  // namespace siding::kubernetes
