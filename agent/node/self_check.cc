#include "agent/node/self_check.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

// A start leaves some files of a few kilobytes each.
constexpr size_t kRoomForStart = 64 << 10;
constexpr Duration kWhenWell = std::chrono::seconds(5);
constexpr Duration kWhenNot = std::chrono::seconds(1);
constexpr char kName[] = "start-check";  // no task's

// Not synced: beside a dump that may take long, and then a start is slow, too, and does not fail. A lack of
// room and a file system that is read-only are known without.
absl::Status TryToWrite(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kName);
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.valid()) return ErrnoError(errno, path);
  absl::Status status = WriteAll(file, std::string(kRoomForStart, '\n'), path);
  if (unlink(path.c_str()) != 0) status.Update(ErrnoError(errno, path));
  return status;
}

absl::Status TryToMakeFolder(const std::string& in) {
  if (in.empty()) return absl::OkStatus();
  std::string path = absl::StrCat(in, "/siding-", kName, "-XXXXXX");
  return mkdtemp(path.data()) != nullptr && rmdir(path.c_str()) == 0 ? absl::OkStatus()
                                                                     : ErrnoError(errno, in);
}

absl::Status TryToMakeCgroup(const Freezer& freezer) {
  SIDING_RETURN_IF_ERROR(freezer.MakeCgroup(kName).status());
  return freezer.RemoveCgroup(kName);
}

absl::Status FindProgram(const std::string& path) {
  return access(path.c_str(), X_OK) == 0 ? absl::OkStatus() : ErrnoError(errno, path);
}

// In this process's life. Others come of a lack of memory, or of too many processes.
bool IsForGood(int error) { return error == EPERM || error == EACCES || error == EINVAL || error == ENOSYS; }

}  // namespace

int TryNamespaces() {
  // As agent/shim/start_init.cc.
  const long flags = CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNS | SIGCHLD;
  const pid_t child = static_cast<pid_t>(syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr));
  if (child == 0) {
    const bool mounted = mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0;
    _exit(mounted ? 0 : errno);
  }
  if (child < 0) return errno;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

std::function<std::string()> LookForNamespaces(std::function<int()> attempt) {
  return [attempt = std::move(attempt), settled = std::optional<std::string>()]() mutable {
    if (settled) return *settled;
    const int error = attempt();
    std::string why;
    if (error != 0) {
      why = absl::StrCat("the agent cannot make namespaces for tasks: ", strerror(error),
                         geteuid() == 0 ? "" : "; it does not run as root");
    }
    if (error == 0 || IsForGood(error)) settled = why;
    return why;
  };
}

std::string WhyNoStart(const StartNeeds& needs) {
  if (needs.why_no_namespaces) {
    if (std::string why = needs.why_no_namespaces(); !why.empty()) return why;
  }
  if (absl::Status written = TryToWrite(needs.state_dir); !written.ok())
    return absl::StrCat("its state folder cannot be written: ", std::string(written.message()));
  if (absl::Status made = TryToMakeFolder(needs.temp_dir); !made.ok())
    return absl::StrCat("no folder for temporary files can be made: ", std::string(made.message()));
  if (absl::Status made = TryToMakeCgroup(needs.freezer); !made.ok())
    return absl::StrCat("no cgroup can be made: ", std::string(made.message()));
  for (const std::string& path : needs.programs) {
    if (absl::Status found = FindProgram(path); !found.ok())
      return absl::StrCat("a program of the agent is missing: ", std::string(found.message()));
  }
  return "";
}

SelfCheck::SelfCheck(StartNeeds needs, const Clock& clock)
    : needs_(std::move(needs)),
      look_(
          [this, last = std::string()]() mutable {
            std::string why = WhyNoStart(needs_);
            if (why != last && !why.empty()) spdlog::error("no task can start on this node: {}", why);
            if (why != last && why.empty()) spdlog::info("tasks can start on this node again");
            return last = why;
          },
          [](const std::string& why) { return why.empty() ? kWhenWell : kWhenNot; }, clock) {}

std::string SelfCheck::problem() const {
  return look_.Newest(kPatience).value_or(
      absl::StrCat("its state folder ", needs_.state_dir, " does not answer"));
}

}  // namespace siding
