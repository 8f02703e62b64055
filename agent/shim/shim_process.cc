#include "agent/shim/shim_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "agent/os/processes.h"
#include "agent/task/json_file.h"
#include "agent/task/shim.pb.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr int kLockFd = 3;  // the shim's; shim_main.cc marks it close-on-exec
constexpr Duration kFindPatience = std::chrono::seconds(5);
constexpr Duration kEndPatience = std::chrono::seconds(30);

// Who says to be the shim; one that was started a moment ago may not have written it yet, but has the lock
// open.
std::optional<agent::ProcessRef> Holder(const std::string& folder, int lock) {
  auto said = ReadJsonFile<agent::ProcessRef>(folder + "/shim.json");
  if (said.ok() && IsAlive(said->pid(), said->start_time())) return *std::move(said);
  const auto seen = OldestWithOpen(lock);
  if (!seen) return std::nullopt;
  agent::ProcessRef ref;
  ref.set_pid(seen->pid);
  ref.set_start_time(seen->start_time);
  return ref;
}

}  // namespace

void BecomeShim(const char* const* argv, int null, int log, int lock) {
  setsid();
  dup2(null, 0);
  dup2(log, 1);
  dup2(log, 2);
  if (lock == kLockFd)
    fcntl(kLockFd, F_SETFD, 0);
  else if (lock >= 0)
    dup2(lock, kLockFd);
  syscall(SYS_close_range, lock >= 0 ? kLockFd + 1 : kLockFd, ~0U, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execv(argv[0], const_cast<char* const*>(argv));
  _exit(127);
}

absl::StatusOr<UniqueFd> StartShim(const std::string& program, const std::string& folder) {
  const std::string lock_path = folder + "/shim.lock";
  const std::string log_path = folder + "/shim.log";
  UniqueFd lock(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return ErrnoError(errno, "open " + lock_path);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return ErrnoError(errno, "lock " + lock_path);
  UniqueFd log(open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!log.valid() || !null.valid()) return ErrnoError(errno, "open " + log_path);
  if (access(program.c_str(), X_OK) != 0) return ErrnoError(errno, program);
  const char* const argv[] = {program.c_str(), folder.c_str(), nullptr};
  const pid_t pid = fork();
  if (pid < 0) return ErrnoError(errno, "fork");
  if (pid == 0) BecomeShim(argv, null.get(), log.get(), lock.get());
  auto pidfd = OpenPidfd(pid);
  if (!pidfd.ok()) {  // a task that cannot be watched is none
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  return pidfd;
}

absl::StatusOr<UniqueFd> FindShim(const std::string& folder) {
  const std::string lock_path = folder + "/shim.lock";
  UniqueFd lock(open(lock_path.c_str(), O_RDONLY | O_CLOEXEC));  // also where nothing can be written
  if (!lock.valid() && errno == ENOENT) return absl::NotFoundError("no shim was started");
  if (!lock.valid()) return ErrnoError(errno, "open " + lock_path);
  // As long as the lock is held there is a shim, whatever it has written so far.
  absl::StatusOr<UniqueFd> found =
      absl::UnavailableError(lock_path + " is held, and no process is seen to hold it");
  PollUntil(
      [&] {
        if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
          found = absl::NotFoundError("the shim has ended");
          return true;
        }
        const auto holder = Holder(folder, lock.get());
        if (!holder || !IsAlive(holder->pid(), holder->start_time())) return false;
        auto pidfd = OpenPidfd(holder->pid());
        if (!pidfd.ok() || !IsAlive(holder->pid(), holder->start_time())) return false;
        found = std::move(pidfd);
        return true;
      },
      kFindPatience);
  return found;
}

absl::Status EndShim(const std::string& folder) {
  absl::StatusOr<UniqueFd> shim = absl::UnknownError("");
  const auto ended = [&] {
    shim = FindShim(folder);
    if (shim.ok()) syscall(SYS_pidfd_send_signal, shim->get(), SIGKILL, nullptr, 0);
    return absl::IsNotFound(shim.status());
  };
  if (PollUntil(ended, kEndPatience)) return absl::OkStatus();
  return shim.ok() ? absl::DeadlineExceededError("the shim of " + folder + " does not end") : shim.status();
}

ShimWait WaitForShim(const UniqueFd& pidfd, int wake, int most_ms) {
  pollfd fds[2] = {{pidfd.get(), POLLIN, 0}, {wake, POLLIN, 0}};
  int ready;
  do ready = poll(fds, 2, most_ms);
  while (ready < 0 && errno == EINTR);
  if (ready == 0) return ShimWait::kRunning;
  if ((fds[0].revents & POLLIN) == 0) return ShimWait::kWoken;
  siginfo_t info;
  waitid(static_cast<idtype_t>(P_PIDFD), pidfd.get(), &info,
         WEXITED | WNOHANG);  // fails if adopted: not ours
  return ShimWait::kEnded;
}

}  // namespace siding
