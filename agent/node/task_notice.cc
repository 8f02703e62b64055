// A task is told that it is about to be frozen or dumped.
#include <signal.h>

#include "agent/node/task.h"
#include "agent/os/processes.h"

namespace siding {

// SIGURG, since a program that does not wait for it never sees it.
absl::Status Task::GiveNotice(Duration notice) {
  if (notice <= Duration(0)) return absl::OkStatus();
  const pid_t init = Init().pid();
  // To every process but the init, which would only pass it on.
  for (pid_t pid : ProcessTree(init)) {
    if (pid != init) kill(pid, SIGURG);
  }
  if (WaitEnded(notice, [this] { return IsCalledOff(); })) return absl::AbortedError("the task has ended");
  if (IsCalledOff()) return absl::AbortedError("called off before the notice was over");
  return absl::OkStatus();
}

}  // namespace siding
