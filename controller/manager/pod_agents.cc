#include "controller/manager/pod_agents.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "controller/wire/wire.h"
#include "google/protobuf/util/message_differencer.h"

namespace siding {
namespace {

constexpr char kOnlyEvicted[] = "pods can only be evicted as yet";

bool IsSame(v1::TaskReport a, const v1::TaskReport& b) {
  a.set_version(b.version());
  return google::protobuf::util::MessageDifferencer::Equals(a, b);
}

TaskId IdOf(const v1::TaskRef& ref) { return {JobId(ref.job()), ref.incarnation(), ref.rank()}; }

void SetId(const TaskId& id, v1::TaskReport& report) {
  report.mutable_task()->set_job(id.job.value());
  report.mutable_task()->set_incarnation(id.incarnation);
  report.mutable_task()->set_rank(id.rank);
}

bool IsOver(v1::TaskPhase phase) { return phase == v1::EXITED || phase == v1::LOST; }

v1::Hello HelloOf(const kubernetes::ClusterNow::Machine& machine) {
  v1::Hello hello;
  hello.set_node(machine.id.value());
  // That a machine restarted shows in its pods.
  hello.set_boot_id(machine.uid);
  *hello.mutable_capacity() = ToProto(machine.allocatable);
  hello.set_criu_problem(kOnlyEvicted);
  hello.set_agent("none: kubernetes");
  return hello;
}

}  // namespace

void PodAgents::SetBell(std::function<void()> bell) {
  MutexLock lock(mutex_);
  bell_ = std::move(bell);
}

void PodAgents::Send(const NodeId& node, v1::ToAgent command) {
  {
    MutexLock lock(mutex_);
    if (served_.contains(node)) {
      orders_.emplace_back(node, std::move(command));
      if (bell_) bell_();
      return;
    }
  }
  others_.Send(node, std::move(command));
}

std::vector<kubernetes::PodTask> PodAgents::Round(const kubernetes::ClusterNow& cluster, Time now,
                                                  Duration heartbeat, AgentEvents& events) {
  Meet(cluster, events);
  Observe(cluster.tasks, events);
  std::vector<Order> orders;
  {
    MutexLock lock(mutex_);
    orders.swap(orders_);
  }
  for (const Order& order : orders) Obey(order, events);
  Beat(cluster, now, heartbeat, events);
  std::vector<kubernetes::PodTask> evicted;
  for (const kubernetes::PodTask& task : cluster.tasks) {
    if (unwanted_.contains(task.id) && !task.succeeded) evicted.push_back(task);
  }
  return evicted;
}

void PodAgents::Leave(AgentEvents& events) { Meet({}, events); }

void PodAgents::Meet(const kubernetes::ClusterNow& cluster, AgentEvents& events) {
  std::map<NodeId, const kubernetes::ClusterNow::Machine*> there;
  for (const auto& machine : cluster.machines) there[machine.id] = &machine;
  for (auto it = machines_.begin(); it != machines_.end();) {
    const auto found = there.find(it->first);
    if (found != there.end() && found->second->uid == it->second.uid) {
      ++it;
      continue;
    }
    {
      MutexLock lock(mutex_);
      served_.erase(it->first);
    }
    events.OnDisconnected(it->first);
    it = machines_.erase(it);
  }
  for (const auto& [id, machine] : there) {
    if (machines_.contains(id)) continue;
    v1::Hello hello = HelloOf(*machine);
    for (const kubernetes::PodTask& task : cluster.tasks) {
      if (task.node != id || forgotten_.contains(task.id)) continue;
      Task& told = tasks_[task.id];
      told = {id, ReportOf(task)};
      told.report.set_version(++version_);
      *hello.add_tasks() = told.report;
    }
    {
      MutexLock lock(mutex_);
      served_.insert(id);
    }
    if (const absl::Status met = events.OnConnected(id, hello); !met.ok()) {
      MutexLock lock(mutex_);
      served_.erase(id);
      log_.Warn(id.value(),
                absl::StrCat("kubernetes: node ", id.value(), " is not spoken for: ", met.message()));
      continue;
    }
    machines_[id] = {machine->uid, {}};
  }
}

v1::TaskReport PodAgents::ReportOf(const kubernetes::PodTask& task) const {
  v1::TaskReport report;
  SetId(task.id, report);
  report.set_phase(task.succeeded ? v1::EXITED : task.started ? v1::RUNNING : v1::LAUNCHING);
  report.set_memory(task.spec.per_node.memory.value);
  if (task.started) report.set_started_us(ToMicros(*task.started));
  if (task.succeeded) {
    report.set_exit_code(*task.succeeded ? 0 : 1);
    report.set_own_end(!unwanted_.contains(task.id));
  }
  report.set_cannot_checkpoint(kOnlyEvicted);
  *report.mutable_spec() = ToProto(task.spec);
  return report;
}

void PodAgents::Tell(Task& task, AgentEvents& events) {
  task.report.set_version(++version_);
  v1::FromAgent message;
  *message.mutable_report() = task.report;
  events.OnMessage(task.node, message);
}

void PodAgents::Observe(const std::vector<kubernetes::PodTask>& tasks, AgentEvents& events) {
  std::set<TaskId> there;
  for (const kubernetes::PodTask& task : tasks) {
    there.insert(task.id);
    if (forgotten_.contains(task.id) || !machines_.contains(task.node)) continue;
    v1::TaskReport report = ReportOf(task);
    Task& told = tasks_[task.id];
    report.set_failed_op(told.report.failed_op());
    report.set_error(told.report.error());
    if (told.node == task.node && IsSame(report, told.report)) continue;
    told = {task.node, std::move(report)};
    Tell(told, events);
  }
  for (auto& [id, task] : tasks_) {
    if (there.contains(id) || IsOver(task.report.phase())) continue;
    // Evicted as ordered, or deleted by somebody.
    task.report.set_phase(unwanted_.contains(id) ? v1::EXITED : v1::LOST);
    task.report.set_exit_code(unwanted_.contains(id) ? 143 : 0);
    if (machines_.contains(task.node)) Tell(task, events);
  }
  std::erase_if(forgotten_, [&](const TaskId& id) { return !there.contains(id); });
}

void PodAgents::Obey(const Order& order, AgentEvents& events) {
  const auto& [node, command] = order;
  const TaskId id = IdOf(command.task());
  const auto found = tasks_.find(id);
  switch (command.what_case()) {
    case v1::ToAgent::kKill:
      unwanted_.insert(id);
      if (found != tasks_.end()) {
        if (IsOver(found->second.report.phase())) Tell(found->second, events);
      } else {
        Task gone{node, {}};
        SetId(id, gone.report);
        gone.report.set_phase(v1::LOST);
        Tell(gone, events);
      }
      return;
    case v1::ToAgent::kForget:
      if (found != tasks_.end() && IsOver(found->second.report.phase())) {
        tasks_.erase(found);
        forgotten_.insert(id);
      }
      unwanted_.erase(id);
      return;
    case v1::ToAgent::kVerify:
    case v1::ToAgent::kDelete: {
      v1::FromAgent message;
      message.mutable_result()->set_op(command.op());
      // There is no image on any node.
      message.mutable_result()->set_code(
          command.has_delete_() ? 0 : static_cast<int>(absl::StatusCode::kNotFound));
      events.OnMessage(node, message);
      return;
    }
    case v1::ToAgent::kCommit:
    case v1::ToAgent::kAbort:
    case v1::ToAgent::kWelcome:
      return;
    default:
      if (found == tasks_.end()) return;
      found->second.report.set_failed_op(command.op());
      found->second.report.set_error(kOnlyEvicted);
      Tell(found->second, events);
  }
}

void PodAgents::Beat(const kubernetes::ClusterNow& cluster, Time now, Duration heartbeat,
                     AgentEvents& events) {
  for (const auto& there : cluster.machines) {
    const auto machine = machines_.find(there.id);
    if (machine == machines_.end() || now < machine->second.last_heartbeat + heartbeat) continue;
    machine->second.last_heartbeat = now;
    v1::FromAgent message;
    v1::Heartbeat& beat = *message.mutable_heartbeat();
    beat.set_ram_available(there.allocatable.memory.value);
    for (auto& [id, task] : tasks_) {
      if (task.node == there.id) *beat.add_tasks() = task.report;
    }
    events.OnMessage(there.id, message);
  }
}

}  // namespace siding
