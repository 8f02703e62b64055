#include "tests/simulation/task.h"

#include "agent/task/orders.h"

namespace siding::simulation {

Task::Task(Host& host, const TaskId& id) : host_(host), id_(id) {
  v1::TaskRef& ref = *record_.mutable_report()->mutable_task();
  ref.set_job(id.job.value());
  ref.set_incarnation(id.incarnation);
  ref.set_rank(id.rank);
  record_.set_boot_id(std::to_string(host.machine.boot()));
}

// ---- Waiting. ----

void Task::Wait(std::optional<Time> until, std::function<bool()> ready, Step then) {
  ready_ = [this, until, ready = std::move(ready)] {
    return (until && host_.lab.timeline.Now() >= *until) || (ready && ready());
  };
  then_ = std::move(then);
  if (until) WakeAt(*until);
  Notify();
}

void Task::WakeAt(Time when) {
  host_.lab.timeline.At(when, [this, life = std::weak_ptr<int>(life_)] {
    if (!life.expired()) Notify();
  });
}

void Task::Pause(Duration least, Duration most, Step then) {
  Wait(In(host_.lab.random.Between(least, most)), {}, std::move(then));
}

void Task::Notify() {
  if (!ready_ || !ready_()) return;
  ready_ = nullptr;
  const Step then = std::exchange(then_, nullptr);
  then();
}

void Task::OnShim() {
  if (!host_.machine.HasShim(id_)) ended_ = true;
  if (ended_ && !busy_) Conclude();
  Notify();
}

// ---- One operation after another. ----

void Task::Execute(const v1::ToAgent& command) {
  const v1::TaskPhase phase = record_.report().phase();
  switch (command.what_case()) {
    case v1::ToAgent::kCommit:
    case v1::ToAgent::kAbort: {
      const bool commit = command.has_commit();
      const bool undoable = busy_ && (current_.has_dump() || current_.has_suspend());
      const bool meant =
          commit ? phase == v1::PREPARED && command.op() == current_.op() : command.op() >= current_.op();
      if (!undoable || !meant || decision_ != Decision::kNone) return Send();
      decision_ = commit ? Decision::kCommit : Decision::kAbort;
      return Notify();
    }
    case v1::ToAgent::kKill:
      if (!busy_) break;
      if (command.kill().grace_us() == 0) kill_now_ = true;
      if (!current_.has_kill()) {
        pending_ = command;
        interrupt_ = true;
        if (current_.has_dump()) abandon_ = true;
      }
      Send();
      return Notify();
    default:
      if (!busy_) break;
      const bool same = command.op() == current_.op() && command.what_case() == current_.what_case();
      const bool killing = pending_ && pending_->has_kill();
      if (!same && !killing && !current_.has_kill()) pending_ = command;
      return Send();
  }
  if (const Step operation = Plan(command)) {
    Begin(command, operation);
  } else {
    Send();
  }
}

Task::Step Task::Plan(const v1::ToAgent& command) {
  if (IsOver(record_.report().phase())) return {};
  switch (command.what_case()) {
    case v1::ToAgent::kLaunch:
    case v1::ToAgent::kRestore: {
      if (!TakeStart(record_, command)) return {};
      const bool restore = command.has_restore();
      SetPhase(restore ? v1::RESTORING : v1::LAUNCHING, command.op());
      return [this, command, restore] { restore ? DoRestore(command) : DoLaunch(command); };
    }
    case v1::ToAgent::kSuspend:
    case v1::ToAgent::kResume:
      return PlanSuspend(command);
    case v1::ToAgent::kDump:
      return PlanDump(command);
    case v1::ToAgent::kSave:
      return PlanSave(command);
    case v1::ToAgent::kKill:
      record_.set_kill_ordered(true);
      Persist();
      return [this, grace = Duration(command.kill().grace_us())] { DoKill(grace); };
    default:
      return {};
  }
}

void Task::Begin(const v1::ToAgent& command, const Step& operation) {
  busy_ = true;
  current_ = command;
  decision_ = Decision::kNone;
  interrupt_ = kill_now_ = abandon_ = false;
  operation();
}

void Task::Finish() {
  interrupt_ = abandon_ = false;
  decision_ = Decision::kNone;
  if (ended_) Conclude();
  Step next;
  if (pending_) {
    current_ = *std::exchange(pending_, std::nullopt);
    next = Plan(current_);
    if (!next) Send();
  }
  busy_ = static_cast<bool>(next);
  if (next) next();
}

// ---- What is remembered, and said. ----

void Task::Persist(bool durably) {
  Folder().record = record_;
  if (durably) Folder().durable = record_;
}

void Task::SetPhase(v1::TaskPhase phase, int64_t op) {
  record_.mutable_report()->set_phase(phase);
  record_.mutable_report()->set_op(op);
  Persist();
  Send();
}

void Task::Fail(int64_t op, const std::string& why) {
  record_.mutable_report()->set_failed_op(op);
  record_.mutable_report()->set_error(why);
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
  if (IsOver(report.phase()) || report.phase() == v1::TASK_PHASE_UNSPECIFIED) return;
  const TaskFolder& folder = Folder();
  if (folder.running && report.started_us() == 0) report.set_started_us(folder.running->started_us());
  // The shim died before its task: nobody would learn of the task's end, so it ends now.
  if (!folder.exit) host_.machine.KillAll(id_);
  const agent::DumpRecord& dump = record_.dump();
  const auto image_visible = [&] {
    return host_.lab.store.images.contains(
        NameImage(dump.tier(), host_.machine.node(), dump.checkpoint(), id_.rank));
  };
  SetPhase(ReportEnding(record_, folder.exit ? &*folder.exit : nullptr, image_visible));
}

}  // namespace siding::simulation
