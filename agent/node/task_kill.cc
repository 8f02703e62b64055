#include <signal.h>

#include "agent/node/task.h"
#include "agent/os/processes.h"
#include "common/fault.h"
#include "spdlog/spdlog.h"

namespace siding {

void Task::DoKill(Duration grace) {
  FaultHere<"agent.kill: a task is about to be ended">();
  if (absl::Status status = ThawIfFrozen(); !status.ok()) {
    spdlog::warn("task {}: {}", name_, std::string(status.message()));
  }
  const agent::TaskRecord record = Record();
  const pid_t init = record.init().pid();
  const auto alive = [&] { return init > 0 && IsAlive(init, record.init().start_time()); };
  if (alive()) {
    MutexLock lock(mutex_);
    Observe(task::KillBegun{}).IgnoreError();
  }
  if (grace > Duration(0) && alive()) {
    // To every process but the init, which would only pass it on.
    for (pid_t pid : ProcessTree(init)) {
      if (pid != init) kill(pid, SIGTERM);
    }
    const bool has_network =
        record.report().has_endpoint();  // then it may have ended long before that is told
    if (WaitEnded(grace, [&] { return kill_now_.load() || host_.stopping || (has_network && !alive()); }))
      return;
    if (host_.stopping) return;
  }
  // Hosts have hung when a restored process was killed on its GPU; one that is off it can be.
  if (alive() && record.restored()) {
    if (absl::Status status = LeaveGpus(Duration(0)); !status.ok())
      spdlog::warn("task {}: {}", name_, std::string(status.message()));
  }
  // It has ended by itself, and its shim waits for its last bytes to arrive.
  if (init > 0 && !alive()) EndLastWords();
  // The end of the namespace's init is the end of everything in it.
  freezer().KillAll(outside_, alive() ? init : 0);
  FaultHere<"agent.killed: a task's processes are killed">();
  if (WaitEnded(kEndPatience)) return;
  if (alive())
    spdlog::error("task {}: some processes do not end", name_);
  else
    spdlog::warn("task {}: its processes are gone, and its shim has not written how they ended", name_);
}

}  // namespace siding
