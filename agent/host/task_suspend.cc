#include "agent/host/task.h"

namespace siding {
namespace {
constexpr Duration kFreezePatience = std::chrono::seconds(10);
}

std::function<void()> Task::PlanSuspend(const v1::ToAgent& command) {
  const v1::TaskPhase phase = record_.report().phase();
  if (command.has_resume()) {
    if (phase != v1::SUSPENDED) return {};
    return [this] { DoResume(); };
  }
  if (phase != v1::RUNNING || command.op() == record_.report().failed_op()) return {};
  record_.mutable_report()->clear_failed_op();
  record_.mutable_report()->clear_error();
  record_.set_frozen(true);
  Persist();
  return [this, op = command.op()] { DoSuspend(op); };
}

void Task::DoSuspend(int64_t op) {
  const absl::Status status = freezer().Freeze(name_, record_.init().pid(), kFreezePatience);
  std::lock_guard lock(mutex_);
  if (ended_) return;
  if (!status.ok()) {
    record_.set_frozen(false);
    Fail(op, status);
  }
  SetPhase(status.ok() ? v1::SUSPENDED : v1::RUNNING);
}

absl::Status Task::ThawIfFrozen() {
  {
    std::lock_guard lock(mutex_);
    if (!record_.frozen()) return absl::OkStatus();
  }
  absl::Status status = freezer().Thaw(name_, record_.init().pid(), kFreezePatience);
  if (!status.ok()) return status;
  std::lock_guard lock(mutex_);
  record_.set_frozen(false);
  Persist();
  return absl::OkStatus();
}

void Task::DoResume() {
  const absl::Status status = ThawIfFrozen();
  std::lock_guard lock(mutex_);
  if (ended_) return;
  if (status.ok()) {
    SetPhase(v1::RUNNING);
  } else {
    Fail(current_.op(), status);
    PersistAndSend();
  }
}

}  // namespace siding
