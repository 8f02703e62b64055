// A task found again by a new agent.
#include "agent/checkpoint/dump.h"
#include "agent/host/task.h"
#include "agent/task/ending.h"
#include "agent/launch/json_file.h"
#include "agent/launch/processes.h"
#include "agent/launch/shim_process.h"
#include "common/fault.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {
constexpr Duration kUntracedPatience = std::chrono::seconds(10);
}

void Task::Adopt() {
  std::unique_lock lock(mutex_);
  const v1::TaskPhase phase = record_.report().phase();
  if (IsOver(phase)) return;
  if (phase == v1::TASK_PHASE_UNSPECIFIED) record_.mutable_report()->set_phase(v1::LAUNCHING);
  if (record_.boot_id() != host_.boot_id) {
    // The machine has been started anew: pids of before mean nothing, and there is nothing to wait for.
    record_.clear_init();
    lock.unlock();
    return Conclude();
  }
  if (phase == v1::TASK_PHASE_UNSPECIFIED) {
    // All that is known of it is in its folder.
    ended_ = true;
    return Begin({}, [this] { Conclude(); });
  }
  // The dump was undone by the agent's death: it must not be taken for one that waits for its commit.
  if (phase == v1::PREPARED) record_.mutable_report()->set_phase(v1::DUMPING);
  if (record_.report().phase() == v1::DUMPING) record_.mutable_dump()->set_cut_short(true);
  auto shim = FindShim(folder_);
  if (shim.ok()) {
    Watch(*std::move(shim));
  } else if (absl::IsNotFound(shim.status())) {
    ended_ = true;
  } else {
    // Not to be started a second time: it is taken to live until an agent can tell.
    spdlog::error("task {}: {}", name_, std::string(shim.status().message()));
  }
  Begin({}, [this] { DoAdopt(); });
}

void Task::DoAdopt() {
  v1::TaskPhase phase;
  bool ended;
  {
    std::lock_guard lock(mutex_);
    phase = record_.report().phase();
    ended = ended_;
  }
  if (phase == v1::LAUNCHING || phase == v1::RESTORING) {
    const v1::TaskPhase failed = phase == v1::LAUNCHING ? v1::LAUNCH_FAILED : v1::RESTORE_FAILED;
    // A shim that has gone without a word is an end that nobody saw: Work() says so.
    const bool word = ReadJsonFile<agent::ShimRunning>(folder_ + "/running.json").ok() ||
                      ReadJsonFile<agent::ShimFailed>(folder_ + "/failed.json").ok();
    if (!ended || word) AwaitStart(failed);
    return;
  }
  if (ended) return;
  FaultHere<"agent.adopt: a task of an earlier agent still lives">();
  const pid_t init = record_.init().pid();
  // CRIU, if it is still there, finds its socket closed and undoes the dump; or it was answered, and ends the
  // processes. Either way it lets go of them.
  if (absl::Status status = WaitUntraced(init, kUntracedPatience); !status.ok()) {
    spdlog::error("task {}: {}", name_, std::string(status.message()));
  }
  if (!IsAlive(init, record_.init().start_time())) {
    if (WaitEnded(kUntracedPatience)) return;
  }
  bool frozen;
  {
    std::lock_guard lock(mutex_);
    frozen = record_.frozen();
  }
  // Frozen or about to be, and nothing says how far that went: what is observed counts.
  const bool is_frozen = frozen && phase == v1::SUSPENDED && freezer().IsFrozen(name_, init);
  if (frozen && !is_frozen) {
    if (absl::Status status = ThawIfFrozen(); !status.ok()) {
      spdlog::error("task {}: {}", name_, std::string(status.message()));
    }
  }
  bool parked = is_frozen;
  absl::Status back;
  if (phase == v1::DUMPING && record_.dump().was_frozen()) {
    parked = FreezeAgain();
  } else if (!is_frozen) {
    back = ReturnToGpus();
    parked = !back.ok() && FreezeAgain();
  }
  std::lock_guard lock(mutex_);
  if (ended_) return;
  if (!back.ok()) {
    spdlog::error("task {}: {}", name_, std::string(back.message()));
    record_.mutable_report()->set_error(std::string(back.message()));
  }
  record_.mutable_dump()->set_committing(false);
  if (!EndsBySaving(record_.spec().app())) record_.set_saving(false);
  if (phase == v1::DUMPING) {
    Fail(record_.dump().op(), absl::AbortedError("the agent ended during the checkpoint"));
    record_.mutable_report()->clear_checkpoint();
    record_.mutable_report()->clear_image_bytes();
  }
  SetPhase(parked ? v1::SUSPENDED : v1::RUNNING);
}

}  // namespace siding
