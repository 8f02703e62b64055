// A task found again by a new agent.
#include "agent/checkpoint/repair.h"
#include "agent/checkpoint/tracers.h"
#include "agent/node/task.h"
#include "agent/os/processes.h"
#include "agent/shim/shim_process.h"
#include "agent/task/ending.h"
#include "agent/task/json_file.h"
#include "common/fault.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {
constexpr Duration kUntracedPatience = std::chrono::seconds(10);
}

void Task::Adopt() {
  MutexLock lock(mutex_);
  using Shim = task::FoundAgain;
  const v1::TaskPhase phase = machine_.phase();
  if (IsOver(phase)) return;
  const bool same_boot = record_.boot_id() == host_.boot_id;
  Shim::Shim found = Shim::kGone;
  if (same_boot && phase != v1::TASK_PHASE_UNSPECIFIED) {
    auto shim = FindShim(folder_);
    if (shim.ok()) {
      found = Shim::kLives;
      Watch(*std::move(shim));
    } else if (!absl::IsNotFound(shim.status())) {
      // Not to be started a second time: it is taken to live until an agent can tell.
      found = Shim::kUnknown;
      spdlog::error("task {}: {}", name_, std::string(shim.status().message()));
    }
  }
  Observe(task::FoundAgain{same_boot, found}).IgnoreError();
  // The machine has been started again since.
  lock.Unlock();
  if (!same_boot) Finalize();
}

void Task::DoAdopt() {
  v1::TaskPhase phase;
  bool ended;
  {
    MutexLock lock(mutex_);
    phase = machine_.phase();
    ended = machine_.ended();
  }
  if (phase == v1::LAUNCHING || phase == v1::RESTORING) {
    // A shim that is gone and wrote nothing is an end that was not seen: Work() says so.
    const bool word = ReadJsonFile<agent::ShimRunning>(folder_ + "/running.json").ok() ||
                      ReadJsonFile<agent::ShimFailed>(folder_ + "/failed.json").ok();
    if (!ended || word) AwaitStart();
    return;
  }
  RemoveRestoreFolders();  // the restore is over, and its agent may have died before it could
  if (ended) return;
  FaultHere<"agent.adopt: a task of an earlier agent still lives">();
  const agent::ProcessRef known = Init();
  const pid_t init = known.pid();
  // CRIU, if it is still there, finds its socket closed and undoes the dump; or it was answered, and ends the
  // processes. Either way it lets go of them.
  const absl::Status criu_gone = AwaitCriuGone(init, folder_, kUntracedPatience);
  if (!criu_gone.ok()) spdlog::error("task {}: {}", name_, std::string(criu_gone.message()));
  // Or it has been ended with the agent.
  if (const int sockets = EndRepair(init); sockets > 0)
    spdlog::warn("task {}: criu had left {} of its sockets in repair mode, which is ended", name_, sockets);
  const agent::TaskRecord record = Record();
  const bool frozen = record.frozen();
  if (!frozen) EndHold(freezer().HoldCgroup(outside_));
  if (!IsAlive(init, known.start_time())) {
    // Without a watcher there is nobody to hear it from.
    if (SpeaksOut()           ? AwaitLastWords()
        : watcher_.joinable() ? AwaitWord(known, kUntracedPatience)
                              : WaitEnded(kUntracedPatience))
      return;
  }
  // It lives on: what comes in now is in its next image. Where one of it counts already, its peers stand
  // still.
  if (criu_gone.ok()) LetGo();
  // Frozen or about to be, and nothing says how far that went: what is observed counts.
  const bool is_frozen = frozen && phase == v1::SUSPENDED && freezer().IsFrozen(outside_, init);
  if (frozen && !is_frozen) {
    if (absl::Status status = ThawIfFrozen(); !status.ok()) {
      spdlog::error("task {}: {}", name_, std::string(status.message()));
    }
  }
  bool parked = is_frozen;
  absl::Status back;
  if (phase == v1::DUMPING && record.dump().was_frozen()) {
    parked = FreezeAgain();
  } else if (!is_frozen) {
    back = ReturnToGpus();
    parked = !back.ok() && FreezeAgain();
  }
  MutexLock lock(mutex_);
  if (!back.ok()) spdlog::error("task {}: {}", name_, std::string(back.message()));
  Observe(task::AdoptEnded{parked, std::string(back.message())}).IgnoreError();
}

}  // namespace siding
