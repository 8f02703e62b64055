#include "launch/process.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status.h"

namespace siding::launch {
namespace {

constexpr std::array kStops = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGXCPU};
// mpirun passes these on to the ranks.
constexpr std::array kOthers = {SIGCHLD, SIGUSR1, SIGUSR2, SIGALRM, SIGTSTP, SIGCONT, SIGURG};

}  // namespace

absl::StatusOr<Signals> Signals::Take() {
  sigset_t taken, before;
  sigemptyset(&taken);
  for (const int number : kStops) sigaddset(&taken, number);
  for (const int number : kOthers) sigaddset(&taken, number);
  if (sigprocmask(SIG_BLOCK, &taken, &before) != 0) return ErrnoError(errno, "block signals");
  signal(SIGPIPE, SIG_IGN);  // a connection that is closed is no end of this one
  UniqueFd fd(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return ErrnoError(errno, "signalfd");
  return Signals(std::move(fd), before);
}

std::optional<int> Signals::Next() const {
  signalfd_siginfo info;
  if (read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

bool IsStop(int signal_number) {
  for (const int number : kStops) {
    if (number == signal_number) return true;
  }
  return false;
}

absl::StatusOr<std::string> FindProgram(const std::string& name, const char* path) {
  if (name.find('/') != std::string::npos) {
    if (access(name.c_str(), X_OK) != 0)
      return absl::NotFoundError(absl::StrCat(name, ": ", std::strerror(errno)));
    return name;
  }
  for (const absl::string_view folder : absl::StrSplit(path == nullptr ? "" : path, ':')) {
    const std::string file = absl::StrCat(folder.empty() ? "." : folder, "/", name);
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return absl::NotFoundError(absl::StrCat("there is no ", name, " in $PATH"));
}

absl::StatusOr<pid_t> StartProgram(const std::vector<std::string>& argv, const sigset_t& mask,
                                   const std::string& folder) {
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) return ErrnoError(errno, "start " + argv[0]);
  if (pid == 0) {
    setpgid(0, 0);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    if (!folder.empty() && chdir(folder.c_str()) != 0 && chdir("/") != 0) _exit(126);
    execvp(words[0], words.data());
    std::fprintf(stderr, "siding-mpirun: %s: %s\n", words[0], std::strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
  }
  setpgid(pid, pid);  // in both, so that none comes too late for a signal
  return pid;
}

std::vector<int> AwaitInput(const std::vector<int>& fds) {
  std::vector<pollfd> wait;
  wait.reserve(fds.size());
  for (const int fd : fds) wait.push_back({fd, POLLIN, 0});
  const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(kMostAwaited);
  std::vector<int> ready;
  if (poll(wait.data(), wait.size(), static_cast<int>(most.count())) <= 0) return ready;
  for (const pollfd& one : wait) {
    if (one.revents != 0) ready.push_back(one.fd);
  }
  return ready;
}

int ExitCode(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

}  // namespace siding::launch
