// The app method: the program saves itself.
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "agent/host/task.h"
#include "agent/host/task_ending.h"
#include "agent/host/task_orders.h"
#include "agent/launch/account.h"
#include "agent/launch/processes.h"
#include "common/fault.h"
#include "common/status.h"

namespace siding {
namespace {

// What tells one version of the marker from the next. Not the time alone: a file system's clock is coarse.
struct MarkerState {
  bool exists = false;
  ino_t inode = 0;
  int64_t mtime_ns = 0;
  off_t size = 0;
  bool operator==(const MarkerState&) const = default;
};

// With the user's eyes: what root sees is not for users to learn.
MarkerState LookAt(const std::string& path, const Account& user) {
  if (path.empty()) return {};
  const FilesAsUser as_user(user);
  struct stat info {};
  if (!as_user.ok() || stat(path.c_str(), &info) != 0) return {};
  return {true, info.st_ino, info.st_mtim.tv_sec * 1'000'000'000LL + info.st_mtim.tv_nsec, info.st_size};
}

constexpr Duration kEndGrace = std::chrono::seconds(10);

}  // namespace

std::function<void()> Task::PlanSave(const v1::ToAgent& command) {
  if (!TakeSave(record_, command)) return {};
  Persist();
  return [this, command] { DoSave(command); };
}

void Task::DoSave(const v1::ToAgent& command) {
  const v1::Save& save = command.save();
  std::string marker = save.app().marker();
  if (!marker.empty() && marker.front() != '/') marker = record_.spec().workdir() + "/" + marker;
  const Account user = AccountOf(record_.spec().uid(), record_.spec().gid());
  const MarkerState before = LookAt(marker, user);
  const auto marked = [&] {
    const MarkerState now = LookAt(marker, user);
    return now.exists && !(now == before);
  };
  const auto signal_program = [&]() -> absl::Status {
    const pid_t program = MainProcess(record_.init().pid());
    SIDING_RETURN_IF_ERROR(FaultAt<"agent.save: a program is about to be told to save itself">());
    if (program == 0) return absl::FailedPreconditionError("the job's command is gone");
    if (kill(program, save.app().signal()) != 0) return ErrnoError(errno, "signal the job's command");
    return absl::OkStatus();
  };
  const auto end = std::chrono::steady_clock::now() + Duration(save.app().grace_us());
  absl::Status status = signal_program();
  bool has_marker = false;
  if (status.ok()) {
    const auto over = [&] { return (has_marker = marked()) || Interrupted(); };
    const bool ended = WaitEnded(Duration(save.app().grace_us()), over);
    // Written, then ended at once: both count.
    has_marker |= marked();
    if (!ended && !has_marker) {
      status = Interrupted() ? absl::AbortedError("the save was interrupted")
                             : absl::DeadlineExceededError("the program did not save itself in time");
    }
  }
  FaultHere<"agent.saved: a program has saved itself, or has not">();
  {
    std::lock_guard lock(mutex_);
    if (has_marker && !save.keep_running()) record_.set_saved(true);
    if (!status.ok()) {
      // One that ends by saving itself may still do so: that would not be the end of its work.
      record_.set_saving(EndsBySaving(save.app()));
      Fail(command.op(), status);
    } else {
      record_.set_done_op(command.op());
      if (save.keep_running()) record_.mutable_report()->set_committed_op(command.op());
    }
    Persist();
    if (!ended_ && (!status.ok() || save.keep_running())) Send();
  }
  if (!has_marker || save.keep_running()) return;
  // Its work is safe: it has what is left of its grace to end, for somebody may count on its nodes by then.
  const auto left = std::chrono::duration_cast<Duration>(end - std::chrono::steady_clock::now());
  DoKill(std::clamp(left, Duration(0), kEndGrace));
}

}  // namespace siding
