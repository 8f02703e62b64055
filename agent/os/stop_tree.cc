#include "agent/os/stop_tree.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/os/processes.h"
#include "common/files.h"
#include "common/mutex.h"
#include "common/status.h"

namespace siding {
namespace {

using Steady = std::chrono::steady_clock;

constexpr auto kBetweenLooks = std::chrono::microseconds(50);  // at threads that are about to stop
constexpr int kLooksAtReports = 20;                            // before what does not report is looked for
constexpr size_t kMostNumbers = 8192;                          // in one message
constexpr timeval kLongest{60, 0};                             // for which they are stopped

// The processes that stop others, of this one.
class Stopping {
 public:
  void Add(pid_t pid) {
    MutexLock lock(mutex_);
    pids_.insert(pid);
  }
  void Remove(pid_t pid) {
    MutexLock lock(mutex_);
    pids_.erase(pid);
  }
  bool Has(pid_t pid) {
    MutexLock lock(mutex_);
    return pids_.count(pid) > 0;
  }
  static Stopping& All() {
    static Stopping all;
    return all;
  }

 private:
  Mutex mutex_;
  std::set<pid_t> pids_ ABSL_GUARDED_BY(mutex_);
};

bool HasEnded(pid_t pid, pid_t thread) {
  const auto text = ReadFile(absl::StrCat("/proc/", pid, "/task/", thread, "/stat"));
  if (!text.ok()) return absl::IsNotFound(text.status());
  const auto stat = ParseProcessStat(*text);
  return stat && (stat->state == 'Z' || stat->state == 'X');
}

// What the process does that stops the others. Its end, whatever its cause, lets go of them.
class Stopper {
 public:
  explicit Stopper(pid_t root) : root_(root) {}

  // Those that run can make others meanwhile: until there are none that are new. False: somebody traces one.
  bool StopAll() {
    for (bool again = true; again;) {
      again = false;
      for (const pid_t pid : ProcessTree(root_)) {
        const std::vector<pid_t> listed = ThreadIdsOf(pid);
        for (const pid_t thread : listed) {
          if (threads_.count(thread) > 0 || HasEnded(pid, thread)) continue;
          const bool seized = ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) == 0;
          const int64_t tracer = seized ? getpid() : ReadStatusNumber(thread, "TracerPid");
          if (tracer > 0 && tracer != getpid()) return false;
          again = true;
          // It was ours under another number (execve() in a thread), or is just about to end.
          if (tracer != getpid()) continue;
          threads_[thread].pid = pid;
          ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
        }
        // While one ends, a listing may lack another.
        const auto stat = ReadProcessStat(pid);
        again = again || !stat || static_cast<size_t>(stat->threads) != listed.size();
      }
      AwaitStops();
      for (; !AreStopped(); AwaitStops()) again = true;
    }
    return true;
  }

  std::vector<pid_t> Processes() const {
    std::set<pid_t> pids;
    for (const auto& [thread, state] : threads_) pids.insert(state.pid);
    return {pids.begin(), pids.end()};
  }

  void LetGo() const {
    for (const auto& [thread, state] : threads_) ptrace(PTRACE_DETACH, thread, nullptr, state.signal);
  }

 private:
  struct State {
    pid_t pid = 0;
    bool stopped = false;
    int64_t signal = 0;  // on the way to it, and to be given back
  };

  // One that has become another program in execve() has the number of a thread that was stopped, and runs.
  bool AreStopped() {
    bool all = true;
    for (auto& [thread, state] : threads_) {
      siginfo_t info;
      if (ptrace(PTRACE_GETSIGINFO, thread, nullptr, &info) == 0 || errno != ESRCH) continue;
      ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
      state = {state.pid};
      all = false;
    }
    return all;
  }

  void AwaitStops() {
    for (int looks = 1;; ++looks) {
      bool all = true;
      for (auto i = threads_.begin(); i != threads_.end();) {
        const bool stays = i->second.stopped || Look(i->first, i->second, looks % kLooksAtReports == 0);
        if (stays) all = all && i->second.stopped;
        i = stays ? std::next(i) : threads_.erase(i);
      }
      if (all) return;
      std::this_thread::sleep_for(kBetweenLooks);
    }
  }

  // False: it has ended. Of several threads that end the first does not report it before the others have.
  static bool Look(pid_t thread, State& state, bool closely) {
    siginfo_t info = {};
    // A stop is left as it is: who ends now gives back the signal on the way to which the thread was.
    const int found =
        waitid(P_PID, static_cast<id_t>(thread), &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL);
    if (found == 0 && info.si_pid == 0) return !closely || !HasEnded(state.pid, thread);
    if (found != 0 || info.si_code != CLD_TRAPPED) {
      waitpid(thread, nullptr, __WALL | WNOHANG);
      return false;
    }
    state.stopped = true;
    // Not by us: it gets it when it is let go of.
    if (info.si_status >> 8 == 0) state.signal = info.si_status;
    return true;
  }

  const pid_t root_;
  std::map<pid_t, State> threads_;
};

// After a fork of a process with many threads: system calls and memory, and no locks of ours. Should it wait
// for another's, it is ended.
[[noreturn]] void Stop(pid_t root, pid_t parent, int socket) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  // What the parent has open is not to stay so for longer because of this one.
  constexpr int kSocket = 3;
  if (dup2(socket, kSocket) < 0) _exit(1);
  syscall(SYS_close_range, kSocket + 1, ~0U, 0);
  setsockopt(kSocket, SOL_SOCKET, SO_RCVTIMEO, &kLongest, sizeof kLongest);
  signal(SIGALRM, SIG_DFL);
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  sigprocmask(SIG_UNBLOCK, &alarms, nullptr);
  alarm(2 * static_cast<unsigned>(kLongest.tv_sec));
  // It is known as what it is by then (IsStopping).
  char word = 0;
  if (recv(kSocket, &word, sizeof word, 0) != sizeof word) _exit(1);
  Stopper stopper(root);
  const bool all = stopper.StopAll();
  if (!all) stopper.LetGo();
  std::vector<pid_t> answer = stopper.Processes();
  if (!all || answer.size() >= kMostNumbers) answer.clear();
  answer.push_back(0);  // so that none is an answer as well
  ssize_t heard = -1;
  if (send(kSocket, answer.data(), answer.size() * sizeof(pid_t), MSG_NOSIGNAL) >= 0)
    heard = recv(kSocket, &word, sizeof word, 0);
  stopper.LetGo();
  _exit(heard == 1 ? 0 : 1);
}

// Ends with its process.
class StoppingProcess {
 public:
  StoppingProcess(pid_t root, UniqueFd ours, const UniqueFd& theirs) : socket_(std::move(ours)) {
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) Stop(root, parent, theirs.get());
    if (pid_ < 0) return;
    Stopping::All().Add(pid_);
    Say();
  }
  ~StoppingProcess() { End(SIGKILL); }
  StoppingProcess(const StoppingProcess&) = delete;
  StoppingProcess& operator=(const StoppingProcess&) = delete;

  absl::StatusOr<std::set<pid_t>> Stopped(Steady::time_point until) const {
    if (pid_ < 0) return absl::UnavailableError("there is no process to stop others");
    pollfd answer{socket_.get(), POLLIN, 0};
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Steady::now()).count();
      const int ready = poll(&answer, 1, static_cast<int>(std::max<int64_t>(left, 0)));
      if (ready == 0) return absl::DeadlineExceededError("a thread does not stop");
      if (ready > 0) break;
    }
    std::vector<pid_t> pids(kMostNumbers);
    const ssize_t size = recv(socket_.get(), pids.data(), pids.size() * sizeof(pid_t), MSG_DONTWAIT);
    if (size <= 0) return absl::UnavailableError("who was to stop them has ended");
    pids.resize(static_cast<size_t>(size) / sizeof(pid_t) - 1);
    if (pids.empty()) return absl::FailedPreconditionError("they are traced, or have ended");
    return std::set<pid_t>(pids.begin(), pids.end());
  }

  bool IsHolding() const {
    pollfd socket{socket_.get(), POLLIN, 0};
    return poll(&socket, 1, 0) == 0;
  }

  // False: it had let go of them before.
  bool LetGo() {
    Say();
    return End(0);
  }

 private:
  void Say() const {
    const char word = 0;
    send(socket_.get(), &word, sizeof word, MSG_NOSIGNAL);
  }

  bool End(int signal) {
    if (pid_ <= 0) return false;
    kill(pid_, signal);
    int status = 0;
    pid_t ended = -1;
    while ((ended = waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
    }
    Stopping::All().Remove(std::exchange(pid_, -1));
    return ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  const UniqueFd socket_;
  pid_t pid_ = -1;
};

}  // namespace

bool IsStopping(pid_t pid) { return Stopping::All().Has(pid); }

absl::Status WhileStopped(pid_t root, Duration patience,
                          const std::function<absl::Status(const StoppedTree&)>& act) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return ErrnoError(errno, "socketpair");
  UniqueFd theirs(ends[1]);
  StoppingProcess stopping(root, UniqueFd(ends[0]), theirs);
  theirs = UniqueFd();
  SIDING_ASSIGN_OR_RETURN(const std::set<pid_t> stopped, stopping.Stopped(Steady::now() + patience));
  const absl::Status status = act({stopped, [&stopping] { return stopping.IsHolding(); }});
  return stopping.LetGo() ? status : absl::AbortedError("they were let go of too early");
}

}  // namespace siding
