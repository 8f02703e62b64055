#include "agent/task/ending.h"

#include <signal.h>

namespace siding {
namespace {

// A CRIU that is killed in the middle of a dump leaves its code in a process, which ends at a breakpoint. No
// program can make siding-init end like that. For its command siding-init returns an exit code, which may be
// the program's own.
bool EndedByCriu(const agent::TaskRecord& record, const agent::ShimExit* exit) {
  if (exit == nullptr) return false;
  if (exit->signal() == SIGTRAP) return record.dump().op() != 0;
  return exit->code() == 128 + SIGTRAP && record.dump().cut_short();
}

}  // namespace

bool IsOver(v1::TaskPhase phase) {
  switch (phase) {
    case v1::CHECKPOINTED:
    case v1::SAVED:
    case v1::EXITED:
    case v1::LAUNCH_FAILED:
    case v1::RESTORE_FAILED:
    case v1::LOST:
      return true;
    default:
      return false;
  }
}

void NoteTold(agent::TaskRecord& record, const v1::Save& save) { record.set_saving(!save.keep_running()); }

void NoteSave(agent::TaskRecord& record, const v1::Save& save, bool marked) {
  if (marked && !save.keep_running()) record.set_saved(true);
  // A program that has a marker and has not written it has not saved itself: it ended by itself.
  if (!EndsBySaving(save.app())) record.set_saving(false);
}

Ending JudgeEnding(const agent::TaskRecord& record, const agent::ShimExit* exit,
                   const std::function<bool()>& image_visible) {
  const agent::DumpRecord& dump = record.dump();
  const bool killed = exit == nullptr || exit->signal() == SIGKILL || EndedByCriu(record, exit);
  if (dump.committing() && !dump.keep_running() && killed && !record.kill_ordered() && image_visible())
    return Ending::kCheckpointed;
  const bool ended_well = exit != nullptr && exit->code() == 0 && exit->signal() == 0;
  return record.saved() || (record.saving() && ended_well) ? Ending::kSaved : Ending::kItsOwn;
}

v1::TaskPhase ReportEnding(agent::TaskRecord& record, const agent::ShimExit* exit,
                           const std::function<bool()>& image_visible) {
  const Ending ending = JudgeEnding(record, exit, image_visible);
  v1::TaskReport& report = *record.mutable_report();
  if (ending == Ending::kSaved) return v1::SAVED;
  if (ending == Ending::kCheckpointed) {
    report.set_checkpoint(record.dump().checkpoint());
    report.set_image_bytes(record.dump().image_bytes());
    report.set_image_new_bytes(record.dump().image_new_bytes());
    report.set_image_digest(record.dump().image_digest());
    report.set_committed_op(record.dump().op());
    report.clear_failed_op();
    report.clear_error();
    return v1::CHECKPOINTED;
  }
  if (exit == nullptr) {
    report.set_error("the processes are gone, and nobody saw how");
    return v1::LOST;
  }
  if (EndedByCriu(record, exit) && !record.killed()) {
    report.set_error("criu was killed in the middle of a dump, which the processes did not survive");
    return v1::LOST;
  }
  report.set_exit_code(exit->code());
  report.set_exit_signal(exit->signal());
  report.set_own_end(!record.killed());
  return v1::EXITED;
}

}  // namespace siding
