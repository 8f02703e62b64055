#include "agent/host/task_ending.h"

#include <signal.h>

namespace siding {

Ending JudgeEnding(const agent::TaskRecord& record, const agent::ShimExit* exit,
                   const std::function<bool()>& image_visible) {
  const agent::DumpRecord& dump = record.dump();
  const bool killed = exit == nullptr || exit->signal() == SIGKILL;
  if (dump.committing() && !dump.keep_running() && killed && !record.kill_ordered() && image_visible())
    return Ending::kCheckpointed;
  const bool ended_well = exit != nullptr && exit->code() == 0 && exit->signal() == 0;
  return record.saved() || (record.saving() && ended_well) ? Ending::kSaved : Ending::kItsOwn;
}

}  // namespace siding
