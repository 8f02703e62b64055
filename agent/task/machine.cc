#include "agent/task/machine.h"

#include <chrono>
#include <iterator>
#include <utility>

#include "agent/task/ending.h"
#include "agent/task/orders.h"

namespace siding {
namespace {

using E = TaskEvent;
using Decision = TaskMachine::Decision;

// Beyond a kill's grace, for the work under way to make way.
constexpr Duration kWayPatience = std::chrono::seconds(30);

struct Row {
  v1::TaskPhase from;
  E event;
  v1::TaskPhase to;
};

// Read it by blocks: a phase, and all that changes it or is done in it. A phase without a block is final.
constexpr Row kTable[] = {
    {v1::TASK_PHASE_UNSPECIFIED, E::kLaunch, v1::LAUNCHING},
    {v1::TASK_PHASE_UNSPECIFIED, E::kRestore, v1::RESTORING},
    {v1::TASK_PHASE_UNSPECIFIED, E::kKill, v1::TASK_PHASE_UNSPECIFIED},
    {v1::TASK_PHASE_UNSPECIFIED, E::kFoundAgain, v1::LAUNCHING},

    {v1::LAUNCHING, E::kStarted, v1::RUNNING},
    {v1::LAUNCHING, E::kStartFailed, v1::LAUNCH_FAILED},
    {v1::LAUNCHING, E::kKill, v1::LAUNCHING},
    {v1::LAUNCHING, E::kFoundAgain, v1::LAUNCHING},
    {v1::LAUNCHING, E::kExited, v1::EXITED},
    {v1::LAUNCHING, E::kVanished, v1::LOST},

    {v1::RESTORING, E::kStartsOver, v1::LAUNCHING},
    {v1::RESTORING, E::kStarted, v1::RUNNING},
    {v1::RESTORING, E::kStartFailed, v1::RESTORE_FAILED},
    {v1::RESTORING, E::kKill, v1::RESTORING},
    {v1::RESTORING, E::kFoundAgain, v1::RESTORING},
    {v1::RESTORING, E::kExited, v1::EXITED},
    {v1::RESTORING, E::kVanished, v1::LOST},

    {v1::RUNNING, E::kSuspend, v1::RUNNING},  // first it has notice, and leaves its GPUs
    {v1::RUNNING, E::kDump, v1::DUMPING},
    {v1::RUNNING, E::kAbort, v1::RUNNING},  // of a suspend under way
    {v1::RUNNING, E::kSave, v1::RUNNING},
    {v1::RUNNING, E::kKill, v1::RUNNING},
    {v1::RUNNING, E::kRuns, v1::RUNNING},  // the suspend failed
    {v1::RUNNING, E::kFrozen, v1::SUSPENDED},
    {v1::RUNNING, E::kFoundAgain, v1::RUNNING},
    {v1::RUNNING, E::kSaved, v1::SAVED},
    {v1::RUNNING, E::kExited, v1::EXITED},
    {v1::RUNNING, E::kVanished, v1::LOST},

    {v1::SUSPENDED, E::kResume, v1::SUSPENDED},
    {v1::SUSPENDED, E::kDump, v1::DUMPING},
    {v1::SUSPENDED, E::kKill, v1::SUSPENDED},
    {v1::SUSPENDED, E::kRuns, v1::RUNNING},
    {v1::SUSPENDED, E::kFrozen, v1::SUSPENDED},  // the resume failed
    {v1::SUSPENDED, E::kFoundAgain, v1::SUSPENDED},
    {v1::SUSPENDED, E::kSaved, v1::SAVED},
    {v1::SUSPENDED, E::kExited, v1::EXITED},
    {v1::SUSPENDED, E::kVanished, v1::LOST},

    {v1::DUMPING, E::kAbort, v1::DUMPING},
    {v1::DUMPING, E::kKill, v1::DUMPING},
    {v1::DUMPING, E::kPrepared, v1::PREPARED},
    {v1::DUMPING, E::kRuns, v1::RUNNING},      // the dump failed and is undone
    {v1::DUMPING, E::kFrozen, v1::SUSPENDED},  // the same, of a task that was frozen before it
    {v1::DUMPING, E::kFoundAgain, v1::DUMPING},
    {v1::DUMPING, E::kCheckpointed, v1::CHECKPOINTED},  // found again after the commit
    {v1::DUMPING, E::kSaved, v1::SAVED},
    {v1::DUMPING, E::kExited, v1::EXITED},
    {v1::DUMPING, E::kVanished, v1::LOST},

    {v1::PREPARED, E::kCommit, v1::PREPARED},
    {v1::PREPARED, E::kAbort, v1::PREPARED},
    {v1::PREPARED, E::kKill, v1::PREPARED},
    {v1::PREPARED, E::kCommitting, v1::PREPARED},
    {v1::PREPARED, E::kRuns, v1::RUNNING},
    {v1::PREPARED, E::kFrozen, v1::SUSPENDED},
    {v1::PREPARED, E::kFoundAgain, v1::DUMPING},  // undone by the agent's death: not to be committed
    {v1::PREPARED, E::kCheckpointed, v1::CHECKPOINTED},
    {v1::PREPARED, E::kSaved, v1::SAVED},
    {v1::PREPARED, E::kExited, v1::EXITED},
    {v1::PREPARED, E::kVanished, v1::LOST},
};

constexpr const char* kEventNames[] = {
    "launch", "restore", "suspend",     "resume",       "dump",         "commit",   "abort",
    "save",   "kill",    "starts-over", "started",      "start-failed", "prepared", "committing",
    "runs",   "frozen",  "found-again", "checkpointed", "saved",        "exited",   "vanished"};
static_assert(std::size(kEventNames) == kTaskEventCount);

TaskActions operator+(TaskActions first, const TaskActions& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

TaskActions Only(TaskAction::Kind kind) { return {{kind}}; }

E EventOf(v1::TaskPhase end) {
  switch (end) {
    case v1::CHECKPOINTED:
      return E::kCheckpointed;
    case v1::SAVED:
      return E::kSaved;
    case v1::EXITED:
      return E::kExited;
    default:
      return E::kVanished;
  }
}

}  // namespace

std::optional<v1::TaskPhase> NextPhase(v1::TaskPhase phase, TaskEvent event) {
  for (const Row& row : kTable) {
    if (row.from == phase && row.event == event) return row.to;
  }
  return std::nullopt;
}

std::string ToString(TaskEvent event) { return kEventNames[static_cast<int>(event)]; }

// ---- Orders. ----

TaskActions TaskMachine::Take(const v1::ToAgent& order, Time now) {
  if (order.has_commit() || order.has_abort()) return Decide(order);
  if (order.has_pass_barrier()) return Pass(order);
  if (busy()) return TakeWhileBusy(order, now);
  TaskActions actions = Plan(order);
  return actions.empty() ? Only(TaskAction::kSend) : actions;
}

// The first decision counts: after a commit has begun there is no way back, but for one that waits until the
// images of its other ranks count, too.
TaskActions TaskMachine::Decide(const v1::ToAgent& order) {
  const bool commit = order.has_commit();
  const bool undoable = work_ == TaskWork::kDump || work_ == TaskWork::kSuspend;
  const bool meant = commit ? order.op() == current_.op() : order.op() >= current_.op();
  const bool waits = record_.report().barrier() == v1::BARRIER_LEAVE && may_pass_ < v1::BARRIER_LEAVE;
  const bool open = decision_ == Decision::kNone || (decision_ == Decision::kCommit && !commit && waits);
  if (!undoable || !meant || !open || !Move(commit ? E::kCommit : E::kAbort, record_.report().op()))
    return Only(TaskAction::kSend);
  decision_ = commit ? Decision::kCommit : Decision::kAbort;
  return Only(TaskAction::kWake);
}

TaskActions TaskMachine::Pass(const v1::ToAgent& order) {
  const v1::DumpBarrier barrier = order.pass_barrier().barrier();
  const bool is_there = record_.report().barrier() >= barrier;
  if (work_ != TaskWork::kDump || order.op() != current_.op() || !is_there) return Only(TaskAction::kSend);
  may_pass_ = std::max(may_pass_, barrier);
  return Only(TaskAction::kWake);
}

TaskActions TaskMachine::TakeWhileBusy(const v1::ToAgent& order, Time now) {
  if (!order.has_kill()) {
    const bool same = order.op() == current_.op() && order.what_case() == current_.what_case();
    const bool killing = work_ == TaskWork::kKill || (pending_ && pending_->has_kill());
    if (!same && !killing) pending_ = order;
    return Only(TaskAction::kSend);
  }
  TaskActions actions;
  const Duration grace(order.kill().grace_us());
  // The processes that are to be ended may block the work that ends them. The controller repeats the order
  // until they are gone.
  if (!kill_waits_since_) kill_waits_since_ = now;
  // Hosts have hung when a restored process was killed on its GPU, and a driver may be at work on others.
  const bool on_gpu = record_.spec().per_node().gpus() > 0 && (record_.restored() || record_.gpu().drained());
  if (!on_gpu && now - *kill_waits_since_ >= grace + kWayPatience)
    actions = On(task::KillBegun{}) + Only(TaskAction::kKillProcesses);
  if (grace <= Duration(0)) kill_at_once_ = true;
  if (!current_.has_kill()) {
    pending_ = order;
    interrupted_ = true;
    if (work_ == TaskWork::kDump) actions.push_back({TaskAction::kAbandonDump});
  }
  return actions + Only(TaskAction::kWake) + Only(TaskAction::kSend);
}

// Empty: there is nothing to do.
TaskActions TaskMachine::Plan(const v1::ToAgent& order) {
  if (IsOver(phase())) return {};
  switch (order.what_case()) {
    case v1::ToAgent::kLaunch:
    case v1::ToAgent::kRestore:
      if (!TakeStart(record_, order) || !Move(order.has_restore() ? E::kRestore : E::kLaunch, order.op()))
        return {};
      return Only(TaskAction::kRecordStart) + Only(TaskAction::kSend) + Begin(TaskWork::kStart, order);
    case v1::ToAgent::kSuspend: {
      if (!TakeSuspend(record_, order)) return {};
      // Work that takes a while is reported as under way, and can be called off.
      const bool takes_time = order.suspend().notice_us() > 0 || record_.spec().per_node().gpus() > 0;
      if (!takes_time) return Only(TaskAction::kRecord) + Begin(TaskWork::kSuspend, order);
      Move(E::kSuspend, order.op());
      return Report() + Begin(TaskWork::kSuspend, order);
    }
    case v1::ToAgent::kResume:
      if (!NextPhase(phase(), E::kResume)) return {};
      return Begin(TaskWork::kResume, order);
    case v1::ToAgent::kDump:
      if (IsOfLaterMoment(record_.dump(), order)) {
        Fail(order.op(), "its other ranks have run on since they were dumped for this checkpoint");
        return Only(TaskAction::kRecord) + Only(TaskAction::kSend);
      }
      if (!TakeDump(record_, order) || !Move(E::kDump, order.op())) return {};
      return Report() + Begin(TaskWork::kDump, order);
    case v1::ToAgent::kSave:
      if (!TakeSave(record_, order)) return {};
      return Only(TaskAction::kRecord) + Begin(TaskWork::kSave, order);
    case v1::ToAgent::kKill:
      if (!NextPhase(phase(), E::kKill)) return {};
      record_.set_kill_ordered(true);
      return Only(TaskAction::kRecord) + Begin(TaskWork::kKill, order);
    default:
      return {};
  }
}

TaskActions TaskMachine::Begin(TaskWork work, const v1::ToAgent& order) {
  if (!busy()) kill_at_once_ = false;  // else one that came for the work before it is still meant
  work_ = work;
  current_ = order;
  decision_ = Decision::kNone;
  may_pass_ = v1::BARRIER_NONE;
  interrupted_ = false;
  kill_waits_since_.reset();  // a kill has all of its grace from here on
  return {{TaskAction::kBegin, work, order}};
}

// ---- What the record says. ----

bool TaskMachine::Move(TaskEvent event, int64_t op) {
  const std::optional<v1::TaskPhase> next = NextPhase(phase(), event);
  if (!next) return false;
  record_.mutable_report()->set_phase(*next);
  record_.mutable_report()->set_op(op);
  if (*next != v1::DUMPING && *next != v1::PREPARED) record_.mutable_report()->clear_runs_on();
  if (*next != v1::DUMPING) record_.mutable_report()->clear_barrier();
  return true;
}

TaskActions TaskMachine::Report() const {
  TaskActions actions;
  if (IsOver(phase())) actions.push_back({TaskAction::kReleaseGpus});
  return actions + Only(TaskAction::kRecord) + Only(TaskAction::kSend);
}

void TaskMachine::Fail(int64_t op, const std::string& error, bool tier_problem) {
  record_.mutable_report()->set_failed_op(op);
  record_.mutable_report()->set_error(error);
  record_.mutable_report()->set_tier_problem(tier_problem);
}

void TaskMachine::ForgetImage() {
  record_.mutable_report()->clear_checkpoint();
  record_.mutable_report()->clear_image_bytes();
  record_.mutable_report()->clear_image_new_bytes();
  // The controller asks for that of an image that counts.
  if (record_.report().committed_op() != record_.dump().op()) record_.mutable_report()->clear_image_digest();
}

bool TaskMachine::ExitPending() const {
  return ended_ && !IsOver(phase()) && phase() != v1::TASK_PHASE_UNSPECIFIED;
}

// ---- Observations. ----

TaskActions TaskMachine::Observe(const TaskObservation& seen) {
  return std::visit([this](const auto& what) { return On(what); }, seen);
}

// The next agent would not know the task: it is not started.
TaskActions TaskMachine::On(const task::StartNotRecorded& seen) {
  if (work_ != TaskWork::kStart) return {};
  work_ = TaskWork::kFailStart;
  return {{TaskAction::kBegin, TaskWork::kFailStart, current_, seen.error}};
}

TaskActions TaskMachine::On(const task::StartsOver&) {
  if (!Move(E::kStartsOver, current_.op())) return {};
  record_.set_restored(false);
  record_.clear_base();
  record_.mutable_report()->clear_checkpoint();
  return Report();
}

TaskActions TaskMachine::On(const task::Started&) { return Move(E::kStarted) ? Report() : TaskActions{}; }

TaskActions TaskMachine::On(const task::StartFailed& seen) {
  if (!Move(E::kStartFailed)) return {};
  v1::TaskReport& report = *record_.mutable_report();
  report.set_error(seen.error);
  report.set_image_damaged(seen.image_damaged);
  report.set_no_gpu(seen.no_gpu);
  report.set_node_problem(seen.node_problem);
  report.set_outside_problem(seen.outside_problem);
  report.set_image_refused(seen.image_refused);
  return Report();
}

TaskActions TaskMachine::On(const task::SuspendEnded& seen) {
  if (ended_ || !Move(seen.frozen ? E::kFrozen : E::kRuns)) return {};
  if (!seen.error.empty()) Fail(current_.op(), seen.error);
  if (!seen.frozen) record_.set_frozen(false);
  TaskActions actions;
  if (seen.frozen) actions = Only(TaskAction::kReleaseGpus);
  return actions + Report();
}

TaskActions TaskMachine::On(const task::ResumeEnded& seen) {
  if (ended_ || !Move(seen.error.empty() ? E::kRuns : E::kFrozen)) return {};
  if (!seen.error.empty()) Fail(current_.op(), seen.error);
  return Report();
}

// From then on its peers may run on, so no agent dumps it again for that checkpoint.
TaskActions TaskMachine::On(const task::Captured&) {
  if (phase() != v1::DUMPING) return {};
  record_.mutable_dump()->set_met(true);
  return Only(TaskAction::kRecordFirst);
}

TaskActions TaskMachine::On(const task::AtBarrier& seen) {
  const bool meets = seen.barrier == v1::BARRIER_LEAVE
                         ? phase() == v1::PREPARED && current_.dump().leaves_together()
                         : phase() == v1::DUMPING && current_.dump().together();
  if (!meets) return {};
  record_.mutable_report()->set_barrier(seen.barrier);
  return Only(TaskAction::kSend);
}

TaskActions TaskMachine::On(const task::RunsOn& seen) {
  if (phase() != v1::DUMPING || !record_.dump().keep_running()) return {};
  record_.mutable_report()->set_runs_on(true);
  record_.mutable_report()->set_stopped_us(seen.stopped.count());
  return Report();
}

TaskActions TaskMachine::On(const task::Prepared& seen) {
  if (!Move(E::kPrepared, current_.op())) return {};
  agent::DumpRecord& dump = *record_.mutable_dump();
  dump.set_image_bytes(seen.image_bytes);
  dump.set_image_new_bytes(seen.new_bytes);
  dump.set_image_digest(seen.image_digest);
  v1::TaskReport& report = *record_.mutable_report();
  report.set_checkpoint(dump.checkpoint());
  report.set_image_bytes(seen.image_bytes);
  report.set_image_new_bytes(seen.new_bytes);
  report.set_image_digest(seen.image_digest);
  report.set_waited_us(seen.waited.count());
  return Report();
}

TaskActions TaskMachine::On(const task::Committing&) {
  if (decision_ != Decision::kCommit || !Move(E::kCommitting, current_.op())) return {};
  record_.mutable_dump()->set_committing(true);
  return Only(TaskAction::kRecordDurably);
}

TaskActions TaskMachine::On(const task::CommitNotRecorded&) {
  record_.mutable_dump()->set_committing(false);
  return {};
}

TaskActions TaskMachine::On(const task::Committed&) {
  if (!record_.dump().committing()) return {};
  record_.mutable_report()->set_committed_op(current_.op());
  record_.set_done_op(current_.op());
  record_.set_committed_digest(record_.report().image_digest());
  record_.set_was_to_leave(!record_.dump().keep_running());
  if (record_.dump().keep_running()) {
    record_.mutable_base()->set_checkpoint(record_.dump().checkpoint());
    record_.mutable_base()->set_tier(record_.dump().tier());
  }
  return Only(TaskAction::kRecord);
}

TaskActions TaskMachine::On(const task::DumpEnded& seen) {
  record_.mutable_dump()->set_cut_short(seen.cut_short);
  // The end is finalized later: until then the record keeps whether it was committing.
  if (ended_ || !Move(seen.frozen ? E::kFrozen : E::kRuns)) return {};
  record_.mutable_dump()->set_committing(false);
  ForgetImage();
  if (!seen.error.empty()) Fail(current_.op(), seen.error, seen.tier_problem);
  return Report();
}

TaskActions TaskMachine::On(const task::SaveTold&) {
  if (work_ != TaskWork::kSave) return {};
  told_before_ = record_.saving();
  NoteTold(record_, current_.save());
  return Only(TaskAction::kRecord);
}

// SaveEnded writes it down.
TaskActions TaskMachine::On(const task::SaveNotTold&) {
  if (work_ == TaskWork::kSave) record_.set_saving(told_before_);
  return {};
}

TaskActions TaskMachine::On(const task::SaveEnded& seen) {
  if (work_ != TaskWork::kSave) return {};
  const v1::Save& save = current_.save();
  NoteSave(record_, save, seen.marked);
  if (!seen.error.empty()) {
    Fail(current_.op(), seen.error);
  } else {
    record_.set_done_op(current_.op());
    if (save.keep_running()) record_.mutable_report()->set_committed_op(current_.op());
  }
  TaskActions actions = Only(TaskAction::kRecord);
  if (!ended_ && (!seen.error.empty() || save.keep_running())) actions.push_back({TaskAction::kSend});
  return actions;
}

// From here on its end is by order. Recorded durably: after a power cut its exit status may still be there.
TaskActions TaskMachine::On(const task::KillBegun&) {
  if (record_.killed()) return {};
  record_.set_killed(true);
  return Only(TaskAction::kRecordDurably);
}

TaskActions TaskMachine::On(const task::ShimEnded&) {
  ended_ = true;
  TaskActions actions;
  if (!busy() && ExitPending()) actions = Begin(TaskWork::kFinalize, {});
  return actions + Only(TaskAction::kWake);
}

TaskActions TaskMachine::On(const task::AgentStops&) {
  interrupted_ = true;
  pending_.reset();
  if (decision_ == Decision::kNone) decision_ = Decision::kAbort;
  return Only(TaskAction::kWake);
}

TaskActions TaskMachine::On(const task::WorkDone& seen) {
  if (ExitPending() && !seen.agent_stops) return Begin(TaskWork::kFinalize, current_);
  TaskActions actions;
  if (pending_ && !seen.agent_stops) {
    const v1::ToAgent order = *std::exchange(pending_, std::nullopt);
    actions = Plan(order);
    if (!actions.empty()) return actions;
    actions = Only(TaskAction::kSend);
  }
  work_ = TaskWork::kNone;
  decision_ = Decision::kNone;
  interrupted_ = false;
  return actions;
}

TaskActions TaskMachine::On(const task::Ended& seen) {
  if (IsOver(phase()) || phase() == v1::TASK_PHASE_UNSPECIFIED) return {};
  const v1::TaskPhase end = ReportEnding(record_, seen.exit, [&] { return seen.image_visible; });
  if (!Move(EventOf(end))) Move(E::kVanished);
  v1::TaskReport& report = *record_.mutable_report();
  // It may have been dumped again, and that image does not count.
  if (phase() != v1::CHECKPOINTED) report.set_image_digest(record_.committed_digest());
  if (phase() == v1::EXITED && report.own_end()) {
    if (seen.used_all_memory) report.set_out_of_memory(record_.fence_memory());
    report.set_killed_for_memory(seen.killed_for_memory);
  }
  return Report();
}

TaskActions TaskMachine::On(const task::FoundAgain& seen) {
  const v1::TaskPhase before = phase();
  const bool runs_on = record_.report().runs_on();
  record_.mutable_report()->clear_barrier();
  if (busy() || !Move(E::kFoundAgain, record_.report().op())) return {};
  if (!seen.same_boot) {
    // Pids from before the reboot mean nothing, and there is nothing to wait for.
    record_.clear_init();
    return Only(TaskAction::kFinalizeNow);
  }
  if (before == v1::TASK_PHASE_UNSPECIFIED) {
    // All that is known of it is in its folder.
    ended_ = true;
    return Begin(TaskWork::kFinalize, {});
  }
  // Where criu had let go of it already, its end was no sudden one.
  if (phase() == v1::DUMPING && !runs_on) record_.mutable_dump()->set_cut_short(true);
  if (seen.shim == task::FoundAgain::kGone) ended_ = true;
  return Begin(TaskWork::kAdopt, {});
}

TaskActions TaskMachine::On(const task::AdoptEnded& seen) {
  const v1::TaskPhase before = phase();
  if (ended_ || !Move(seen.frozen ? E::kFrozen : E::kRuns)) return {};
  if (!seen.error.empty()) record_.mutable_report()->set_error(seen.error);
  record_.mutable_dump()->set_committing(false);
  if (!EndsBySaving(record_.spec().app())) record_.set_saving(false);
  if (before == v1::DUMPING) {
    Fail(record_.dump().op(), "the agent ended during the checkpoint");
    ForgetImage();
  }
  return Report();
}

}  // namespace siding
