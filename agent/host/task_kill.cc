#include <signal.h>

#include "agent/host/task.h"
#include "agent/launch/json_file.h"
#include "agent/launch/processes.h"
#include "common/fault.h"
#include "spdlog/spdlog.h"

namespace siding {

// Before anything is done to end it: from here on its end is not its own.
void Task::NoteKill() {
  if (record_.killed()) return;
  record_.set_killed(true);
  // Durably: after a power cut, how it ended may be there.
  if (const absl::Status status = WriteJsonFileDurably(folder_ + "/task.json", record_, 0600); !status.ok())
    spdlog::error("task {}: {}", name_, std::string(status.message()));
}

// Whoever is to carry the order out may be kept waiting by the very processes that it is to end. The
// controller says it again until they have.
void Task::KillPastWorker(Duration grace) {
  const auto now = std::chrono::steady_clock::now();
  if (!told_to_end_) told_to_end_ = now;
  // Hosts have hung when a restored process was killed on its GPU, and a driver may be at work on others.
  const bool on_gpu = UsesGpus() && (record_.restored() || record_.gpu().drained());
  if (on_gpu || now - *told_to_end_ < grace + kEndPatience) return;
  NoteKill();
  spdlog::warn("task {}: what is under way does not make way; its processes are killed", name_);
  freezer().KillAll(name_, LivingInit());
}

void Task::DoKill(Duration grace) {
  FaultHere<"agent.kill: a task is about to be ended">();
  if (absl::Status status = ThawIfFrozen(); !status.ok()) {
    spdlog::warn("task {}: {}", name_, std::string(status.message()));
  }
  const pid_t init = record_.init().pid();
  const auto alive = [&] { return init > 0 && IsAlive(init, record_.init().start_time()); };
  if (alive()) {
    std::lock_guard lock(mutex_);
    NoteKill();
  }
  if (grace > Duration(0) && alive()) {
    // To every process but the init, which would only pass it on.
    for (pid_t pid : ProcessTree(init)) {
      if (pid != init) kill(pid, SIGTERM);
    }
    if (WaitEnded(grace, [&] { return kill_now_.load() || host_.stopping; })) return;
    if (host_.stopping) return;
  }
  // Hosts have hung when a restored process was killed on its GPU; one that is off it can be.
  if (alive() && record_.restored()) {
    if (absl::Status status = LeaveGpus(Duration(0)); !status.ok())
      spdlog::warn("task {}: {}", name_, std::string(status.message()));
  }
  // The end of the namespace's init is the end of everything in it.
  freezer().KillAll(name_, alive() ? init : 0);
  FaultHere<"agent.killed: a task's processes are killed">();
  if (!WaitEnded(kEndPatience)) spdlog::error("task {}: some processes do not end", name_);
}

}  // namespace siding
