#include "agent/criu/swrk.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "agent/os/processes.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr int kCapCheckpointRestore = 40;  // missing in Debian 12's headers of some kernels
constexpr std::array kCriuCapabilities = {
    kCapCheckpointRestore, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH,
    CAP_NET_ADMIN,         CAP_SYS_CHROOT, CAP_KILL,      CAP_SETPCAP};
constexpr Duration kUndoTime = std::chrono::seconds(10);
constexpr int kLookAgainMs = 100;

// Becomes the user, keeping CRIU's capabilities over the exec. Runs after fork in a process with threads:
// system calls only.
bool BecomeUser(const CriuUser& user) {
  if (prctl(PR_SET_KEEPCAPS, 1) != 0) return false;
  const gid_t group = user.gid;
  if (syscall(SYS_setgroups, 1, &group) != 0 || syscall(SYS_setresgid, user.gid, user.gid, user.gid) != 0 ||
      syscall(SYS_setresuid, user.uid, user.uid, user.uid) != 0) {
    return false;
  }
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  for (int capability : kCriuCapabilities) {
    const unsigned bit = 1u << (capability % 32);
    data[capability / 32].effective |= bit;
    data[capability / 32].permitted |= bit;
    data[capability / 32].inheritable |= bit;
  }
  if (syscall(SYS_capset, &header, data) != 0) return false;
  for (int capability : kCriuCapabilities) {
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) != 0) return false;
  }
  // A change of user makes a process undumpable, and its /proc files root's.
  prctl(PR_SET_DUMPABLE, 1);
  return true;
}

// Without CAP_SYS_RESOURCE the kernel refuses that: then it stays what the agent's is, which a service
// manager has set (OOMScoreAdjust). System calls only.
void BeEndedLast() {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  if (write(fd, "-1000\n", 6) < 0) {
    // As the agent's.
  }
  close(fd);
}

std::vector<std::string> Environment(const CriuSettings& settings) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view text = *entry;
    if (!settings.contains(std::string(text.substr(0, text.find('='))))) environment.emplace_back(text);
  }
  for (const auto& [name, value] : settings) {
    if (!value.empty()) environment.push_back(absl::StrCat(name, "=", value));
  }
  return environment;
}

}  // namespace

absl::StatusOr<Swrk> Swrk::Start(const std::string& path, const CriuUser& user,
                                 const std::vector<std::string>& cgroups, const std::vector<int>& handed_over,
                                 const CriuSettings& settings, For what) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return ErrnoError(errno, "socketpair");
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  std::vector<UniqueFd> procs;
  for (const std::string& cgroup : cgroups) {
    procs.emplace_back(open((cgroup + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    if (!procs.back().valid()) return ErrnoError(errno, "open the cgroup " + cgroup);
  }
  const int last_fd = kFirstHandedOver + static_cast<int>(handed_over.size()) - 1;
  // Allocated before the fork.
  std::vector<int> copies(handed_over.size());
  const std::vector<std::string> variables = Environment(settings);
  std::vector<char*> environment;
  for (const std::string& variable : variables) environment.push_back(const_cast<char*>(variable.c_str()));
  environment.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) return ErrnoError(errno, "fork");
  if (pid == 0) {
    constexpr int kFd = 3;
    // Out of the way first: one of them may have a number that another is to get.
    const int socket = fcntl(theirs.get(), F_DUPFD, last_fd + 1);
    for (size_t i = 0; i < copies.size(); ++i) copies[i] = fcntl(handed_over[i], F_DUPFD, last_fd + 1);
    for (const UniqueFd& group : procs) {
      if (write(group.get(), "0", 1) != 1) _exit(124);
    }
    const int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    dup2(socket, kFd);
    for (size_t i = 0; i < copies.size(); ++i) dup2(copies[i], kFirstHandedOver + static_cast<int>(i));
    syscall(SYS_close_range, last_fd + 1, ~0U, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    for (int signal_number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(signal_number, SIG_DFL);
    // Restored processes would inherit both.
    if (what == For::kDump) {
      signal(SIGXFSZ, SIG_IGN);
      BeEndedLast();
    }
    setsid();  // a Ctrl-C at the agent's terminal must not end a dump half-way
    if (user.as_user && !BecomeUser(user)) _exit(125);
    char swrk[] = "swrk", socket_fd[] = "3";
    char* const arguments[] = {const_cast<char*>(path.c_str()), swrk, socket_fd, nullptr};
    execve(path.c_str(), arguments, environment.data());
    _exit(127);
  }
  return Swrk(pid, std::move(ours));
}

Swrk::~Swrk() {
  if (pid_ <= 0) return;
  socket_.Reset();
  const bool ended = PollUntil([&] { return waitpid(pid_, nullptr, WNOHANG) != 0; }, kUndoTime);
  if (ended) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

// CRIU handles no signal that would make it undo a dump: SIGTERM ends it where it is, and its own time-out
// (SIGALRM) leads to an abort after five seconds. But it undoes a dump that fails, and that it does at its
// next question, or at its next write if that fails.
void Swrk::Stop(Duration patience) {
  shutdown(socket_.get(), SHUT_RDWR);
  if (patience > Duration(0)) {
    rlimit most = {};
    // Of another user's process only with CAP_SYS_RESOURCE: without, there is its next question.
    if (prlimit(pid_, RLIMIT_FSIZE, nullptr, &most) == 0) {
      most.rlim_cur = 0;
      prlimit(pid_, RLIMIT_FSIZE, &most, nullptr);
    }
    if (PollUntil([&] { return !Running().ok(); }, patience)) return;
  }
  kill(pid_, SIGKILL);
}

absl::Status Swrk::Running() const {
  siginfo_t info = {};
  const bool known = waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
  if (known && info.si_pid == 0) return absl::OkStatus();
  return absl::UnavailableError("criu ended in the middle of its work");
}

absl::StatusOr<criu::Response> Swrk::Call(const criu::Request& request,
                                          const std::function<bool(const criu::Notification&)>& on_notify,
                                          const std::atomic<bool>* abandon, Duration patience) {
  const auto transmit = [&](const criu::Request& message) {
    const std::string packet = message.SerializeAsString();
    return send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(packet.size());
  };
  if (!transmit(request)) return ErrnoError(errno, "criu did not start");
  std::string buffer(1 << 16, '\0');
  for (;;) {
    pollfd wait = {socket_.get(), POLLIN, 0};
    const int ready = poll(&wait, 1, kLookAgainMs);
    if (ready < 0 && errno != EINTR) return ErrnoError(errno, "poll");
    if (abandon != nullptr && *abandon) {
      Stop(patience);
      return absl::AbortedError("criu was stopped");
    }
    // What it has made of a task may have our socket, too, and so it would never be seen to close.
    if (ready == 0) SIDING_RETURN_IF_ERROR(Running());
    if (ready <= 0) continue;
    const ssize_t n = recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return absl::UnavailableError("criu ended without an answer");
    criu::Response response;
    if (!response.ParseFromArray(buffer.data(), static_cast<int>(n))) {
      return absl::InternalError("criu sent something unknown");
    }
    if (response.type() != criu::NOTIFY) return response;
    criu::Request answer;
    answer.set_type(criu::NOTIFY);
    answer.set_notify_success(!on_notify || on_notify(response.notify()));
    if (!transmit(answer)) return absl::UnavailableError("criu ended before it was answered");
  }
}

}  // namespace siding
