#include "agent/checkpoint/precheck.h"
#include "agent/node/task.h"
#include "common/fault.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace siding {

void Task::DoSuspend(const v1::ToAgent& command) {
  const pid_t init = Init().pid();
  const auto freeze = [&]() -> absl::Status {
    SIDING_RETURN_IF_ERROR(GiveNotice(Duration(command.suspend().notice_us())));
    SIDING_RETURN_IF_ERROR(FaultAt<"agent.suspend: a task is about to be frozen">());
    if (SpeaksOut()) return LastWordsOnTheirWay();
    SIDING_RETURN_IF_ERROR(LeaveGpus(Duration(command.suspend().lock_patience_us())));
    absl::Status status = freezer().Freeze(outside_, init, kFreezePatience);
    if (status.ok()) status = FaultAt<"agent.suspend.frozen: a task is frozen, nobody has been told">();
    // A process may have come to its GPU between the two.
    if (status.ok() && UsesGpus() && HasComeToGpus(Init(), Record().gpu()))
      status = absl::UnavailableError("began to use a GPU while it was being suspended");
    if (!status.ok()) status.Update(ThawIfFrozen());
    return status;
  };
  absl::Status status = freeze();
  bool frozen = status.ok();
  if (!frozen) {
    if (absl::Status back = ReturnToGpus(); !back.ok()) {
      spdlog::error("task {}: {}", name_, std::string(back.message()));
      frozen = FreezeAgain();
    }
  }
  MutexLock lock(mutex_);
  if (machine_.ended()) return;
  if (!status.ok())
    spdlog::warn("task {}: suspend {}: {}", name_, command.op(), std::string(status.message()));
  // Until it is measured again: what was on GPUs is in RAM now.
  v1::TaskReport& report = *record_.mutable_report();
  if (frozen && UsesGpus()) report.set_memory(report.memory() + record_.gpu().bytes());
  // An agent that ends says nothing against freezing the task: it is asked again when it is back.
  const std::string error = host_.stopping ? "" : std::string(status.message());
  Observe(task::SuspendEnded{frozen, error}).IgnoreError();
}

absl::Status Task::ThawIfFrozen() {
  {
    MutexLock lock(mutex_);
    if (!record_.frozen()) return absl::OkStatus();
  }
  absl::Status status = freezer().Thaw(outside_, Init().pid(), kFreezePatience);
  FaultHere<"agent.thawed: a task is thawed, which is not yet remembered">();
  if (!status.ok()) return status;
  MutexLock lock(mutex_);
  record_.set_frozen(false);
  Persist();
  return absl::OkStatus();
}

void Task::DoResume() {
  const auto resume = [&]() -> absl::Status {
    SIDING_RETURN_IF_ERROR(TakeGpus());
    SIDING_RETURN_IF_ERROR(FaultAt<"agent.resume: a task is about to be thawed">());
    SIDING_RETURN_IF_ERROR(ThawIfFrozen());
    SIDING_RETURN_IF_ERROR(FaultAt<"agent.resume.thawed: a task is thawed, nobody has been told">());
    return ReturnToGpus();
  };
  const absl::Status status = resume();
  // What is off its GPUs has to stay frozen.
  if (!status.ok() && UsesGpus()) FreezeAgain();
  MutexLock lock(mutex_);
  if (!status.ok()) spdlog::warn("task {}: resume: {}", name_, std::string(status.message()));
  Observe(task::ResumeEnded{std::string(status.message())}).IgnoreError();
}

}  // namespace siding
