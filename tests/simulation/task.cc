#include "tests/simulation/task.h"

namespace siding::simulation {

Task::Task(Host& host, const TaskId& id) : Task(host, id, {}) {
  v1::TaskRef& ref = *record_.mutable_report()->mutable_task();
  ref.set_job(id.job.value());
  ref.set_incarnation(id.incarnation);
  ref.set_rank(id.rank);
  record_.set_boot_id(std::to_string(host.machine.boot()));
}

void Task::OnShim() {
  if (!host_.machine.HasShim(id_)) Observe(task::ShimEnded{});
  Notify();
}

// ---- What the machine wants. ----

void Task::Execute(const v1::ToAgent& command) {
  if (command.has_join_network()) return Join(command.join_network());
  if (command.has_all_joined()) return RunJoined();
  Perform(machine_.Take(command, host_.lab.timeline.Now()));
}

// agent/node/task_network.cc.
void Task::RunJoined() {
  if (record_.report().joined()) host_.machine.Join(id_);
}

void Task::Join(const v1::JoinNetwork& network) {
  const bool runs = machine_.phase() == v1::RUNNING || machine_.phase() == v1::RESTORING;
  if (!runs || !record_.report().has_endpoint()) return;
  if (machine_.phase() == v1::RUNNING) host_.machine.Join(id_);
  host_.lab.on_join(id_, network);
  record_.mutable_report()->set_joined(true);
  Persist();
  Send();
}

void Task::Perform(const TaskActions& actions) {
  for (const TaskAction& action : actions) {
    switch (action.kind) {
      case TaskAction::kRecord:
      case TaskAction::kRecordFirst:
      case TaskAction::kRecordStart:
        Persist();
        break;
      case TaskAction::kRecordDurably:
        Persist(true);
        break;
      case TaskAction::kSend:
        Send();
        break;
      case TaskAction::kReleaseGpus:
        break;  // there are none
      case TaskAction::kWake:
        Notify();
        break;
      case TaskAction::kAbandonDump:
        abandon_ = true;
        break;
      case TaskAction::kKillProcesses:
        host_.machine.KillAll(id_);
        break;
      case TaskAction::kBegin:
        Begin(action.work, action.order);
        break;
      case TaskAction::kFinalizeNow:
        Conclude();
        break;
    }
  }
}

void Task::Begin(TaskWork work, const v1::ToAgent& order) {
  abandon_ = false;
  switch (work) {
    case TaskWork::kNone:
    case TaskWork::kFailStart:  // what is recorded here is recorded
      return Finish();
    case TaskWork::kStart:
      return order.has_restore() ? DoRestore(order) : DoLaunch(order);
    case TaskWork::kSuspend:
      return DoSuspend(order);
    case TaskWork::kResume:
      return DoResume();
    case TaskWork::kDump:
      return DoDump(order);
    case TaskWork::kSave:
      return DoSave(order);
    case TaskWork::kKill:
      return DoKill(Duration(order.kill().grace_us()));
    case TaskWork::kAdopt:
      return DoAdopt();
    case TaskWork::kFinalize:
      Conclude();
      return Finish();
  }
}

// ---- What is remembered, and said. ----

void Task::Persist(bool durably) {
  Folder().record = record_;
  if (durably) Folder().durable = record_;
}

void Task::Send() {
  v1::FromAgent message;
  record_.mutable_report()->set_version(record_.report().version() + 1);
  *message.mutable_report() = record_.report();
  host_.send(std::move(message));
}

int64_t Task::MemoryOf() const {
  const Process* process = host_.machine.Find(id_);
  return process == nullptr ? 0 : process->program.memory.value;
}

v1::TaskReport Task::Report() {
  v1::TaskReport& report = *record_.mutable_report();
  if (const int64_t memory = MemoryOf(); memory > 0) report.set_memory(memory);
  return report;
}

void Task::Conclude() {
  v1::TaskReport& report = *record_.mutable_report();
  const TaskFolder& folder = Folder();
  if (folder.running && report.started_us() == 0) report.set_started_us(folder.running->started_us());
  // The shim died before its task: nobody would learn of the task's end, so it ends now.
  if (!folder.exit) host_.machine.KillAll(id_);
  const agent::DumpRecord& dump = record_.dump();
  const auto image =
      host_.lab.store.images.find(NameImage(dump.tier(), host_.machine.node(), dump.checkpoint(), id_.rank));
  const bool visible = image != host_.lab.store.images.end() && image->second.digest == dump.image_digest();
  Observe(task::Ended{folder.exit ? &*folder.exit : nullptr, visible});
}

}  // namespace siding::simulation
