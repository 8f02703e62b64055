// The app method: the program saves itself.
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "agent/node/task.h"
#include "agent/os/account.h"
#include "agent/os/processes.h"
#include "common/fault.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

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

// Not before it hears the signal, which would end it or be lost: it may not have come so far, or be about to
// end by itself, which must not be taken for a save.
absl::Status Task::TellToSave(const v1::Save& save, Duration patience) {
  const pid_t init = Init().pid();
  const int first = NamesIn(Record()).FirstProcess();
  const int signal = save.app().signal();
  const auto hears = [&] { return HearsSignal(MainProcess(init, first), signal); };
  const bool ended = WaitEnded(patience, [&] { return hears() || Interrupted(); });
  if (ended) return absl::FailedPreconditionError("the task ended before it was told to save itself");
  if (Interrupted()) return absl::AbortedError("the save was interrupted");
  if (!hears()) {
    return absl::FailedPreconditionError(absl::StrCat("the program does not handle signal ", signal,
                                                      ", with which it is told to save itself"));
  }
  {
    MutexLock lock(mutex_);
    Observe(task::SaveTold{}).IgnoreError();
  }
  const auto send = [&]() -> absl::Status {
    SIDING_RETURN_IF_ERROR(FaultAt<"agent.save: a program is about to be told to save itself">());
    const pid_t program = MainProcess(init, first);
    if (program == 0) return absl::FailedPreconditionError("the job's command is gone");
    if (kill(program, signal) != 0) return ErrnoError(errno, "signal the job's command");
    return absl::OkStatus();
  };
  absl::Status sent = send();
  if (!sent.ok()) {
    MutexLock lock(mutex_);
    Observe(task::SaveNotTold{}).IgnoreError();
  }
  return sent;
}

void Task::DoSave(const v1::ToAgent& command) {
  const v1::Save& save = command.save();
  std::string marker = save.app().marker();
  const v1::JobSpec spec = Record().spec();
  if (!marker.empty() && marker.front() != '/') marker = spec.workdir() + "/" + marker;
  const Account user = AccountOf(spec.uid(), spec.gid());
  // Where it lies is up to the job: a server that is away blocks the caller. Then nothing is seen.
  const auto look = [&]() -> std::optional<MarkerState> {
    const auto seen = std::make_shared<MarkerState>();
    const absl::Status looked = InTime([seen, marker, user] {
      *seen = LookAt(marker, user);
      return absl::OkStatus();
    });
    return looked.ok() ? std::optional(*seen) : std::nullopt;
  };
  const std::optional<MarkerState> before = look();
  const auto marked = [&] {
    const std::optional<MarkerState> now = look();
    return before && now && now->exists && !(*now == *before);
  };
  const auto end = std::chrono::steady_clock::now() + Duration(save.app().grace_us());
  const auto left = [&] {
    return std::chrono::duration_cast<Duration>(end - std::chrono::steady_clock::now());
  };
  absl::Status status = before ? TellToSave(save, left())
                               : absl::DeadlineExceededError("its marker cannot be looked at: " + marker);
  bool has_marker = false;
  if (status.ok()) {
    const auto over = [&] { return (has_marker = marked()) || Interrupted(); };
    const bool ended = WaitEnded(left(), over);
    // Written, then ended at once: both count.
    has_marker |= marked();
    if (!ended && !has_marker) {
      status = Interrupted() ? absl::AbortedError("the save was interrupted")
                             : absl::DeadlineExceededError("the program did not save itself in time");
    }
  }
  FaultHere<"agent.saved: a program has saved itself, or has not">();
  {
    MutexLock lock(mutex_);
    if (!status.ok())
      spdlog::warn("task {}: save {}: {}", name_, command.op(), std::string(status.message()));
    Observe(task::SaveEnded{has_marker, std::string(status.message())}).IgnoreError();
  }
  if (!has_marker || save.keep_running()) return;
  // Its work is safe: it has what is left of its grace to end, since a request may count on its nodes.
  DoKill(std::clamp(left(), Duration(0), kEndGrace));
}

}  // namespace siding
