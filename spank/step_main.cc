// siding-slurm-task FD script|step|gang COMMAND...: the process that Slurm takes for the task. The command
// itself runs below the shim at the other end of FD, where it can be checkpointed; this process hands over
// its descriptors, passes signals on and ends as the command ends, or with 99 if it is to be started again.
// If the shim cannot do its work it becomes the command, as if siding were not there, unless the job has been
// requeued: then its work may be in a checkpoint. A gang's task never does: its peers would wait for it in
// their networks. FD is -1 if there is no shim. The user's own process, without any privilege.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "spank/requeue.h"
#include "spank/step_output.h"
#include "spank/step_wire.h"

namespace siding::spank {
namespace {

constexpr int kForwarded[] = {SIGTERM, SIGINT,  SIGHUP,   SIGQUIT, SIGUSR1, SIGUSR2,
                              SIGALRM, SIGTSTP, SIGWINCH, SIGCONT, SIGXCPU, SIGURG};

constexpr int kForEver = -1;
constexpr int kRetryMs = 1000;  // until Slurm answers again

// How long a pipe that is not read is waited for, and how often it is checked.
constexpr int64_t kUnreadPatienceMs = 10'000;
constexpr int kLookMs = 10;
// From slurmstepd to srun and into a file it is a few milliseconds, unless a disk or a processor is busy.
constexpr int64_t kUnderwayMs = 300;

struct Task {
  int shim = -1;
  int signals = -1;
  sigset_t mask_before;
  char** command = nullptr;
  bool of_script = false;
  bool of_gang = false;
  pid_t init = 0;
};

[[noreturn]] void BecomeCommand(const Task& task) {
  // The shim ends when its last client is gone. It is waited for: the command does not expect such a child.
  close(task.shim);
  while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
  }
  sigprocmask(SIG_SETMASK, &task.mask_before, nullptr);
  execvp(task.command[0], task.command);
  std::fprintf(stderr, "%s: %s\n", task.command[0], std::strerror(errno));
  _exit(errno == ENOENT ? 127 : 126);
}

[[noreturn]] void EndBySignal(int number) {
  const rlimit no_core = {0, 0};  // the core would be of this process, which is of no use
  setrlimit(RLIMIT_CORE, &no_core);
  signal(number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  kill(getpid(), number);
  _exit(128 + number);
}

uint32_t Restarts() {
  const char* const count = std::getenv("SLURM_RESTART_COUNT");
  return count == nullptr ? 0 : static_cast<uint32_t>(std::strtoul(count, nullptr, 10));
}

bool HandOver(int shim) {
  const int fds[3] = {0, 1, 2};
  StepHandover handover{Restarts()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
  iovec data = {&handover, sizeof handover};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fds);
  std::memcpy(CMSG_DATA(header), fds, sizeof fds);
  return sendmsg(shim, &message, MSG_NOSIGNAL) == sizeof handover;
}

void TakeSignal(const Task& task) {
  signalfd_siginfo info;
  if (read(task.signals, &info, sizeof info) != sizeof info) return;
  const int number = static_cast<int>(info.ssi_signo);
  if (task.init > 0) {
    // Queued: what the init is sent in another way is sent to every process of the step, the command
    // included.
    sigqueue(task.init, number, {});
    return;
  }
  // Nothing runs yet: the shim sees this process go, and stops.
  if (number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT) EndBySignal(number);
}

// Waits for the shim's next word; false if it has died.
bool NextWord(const Task& task, StepMessage& message) {
  for (;;) {
    pollfd ready[2] = {{task.shim, POLLIN, 0}, {task.signals, POLLIN, 0}};
    if (poll(ready, 2, -1) < 0 && errno != EINTR) return false;
    if (ready[1].revents != 0) TakeSignal(task);
    if (ready[0].revents == 0) continue;
    const ssize_t size = recv(task.shim, &message, sizeof message, 0);
    if (size < 0 && errno == EINTR) continue;
    return size == sizeof message;
  }
}

// Slurm's plugins for MPI hand their ranks a connection to slurmstepd.
bool IsMpiRank() { return std::getenv("PMI_FD") != nullptr || std::getenv("PMIX_RANK") != nullptr; }

// Waits for a signal; one that ends a task ends this one.
void AwaitSignal(const Task& task, int patience_ms) {
  pollfd ready = {task.signals, POLLIN, 0};
  if (poll(&ready, 1, patience_ms) > 0) TakeSignal(task);
}

int64_t NowMs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

// The requeue kills srun, and what srun has not written by then is nowhere: the image is of a task that has
// written it.
void AwaitOutput(const Task& task) {
  const int64_t patience_ends = NowMs() + kUnreadPatienceMs;
  while (IsUnread(1, 2) && NowMs() < patience_ends) AwaitSignal(task, kLookMs);
  const int64_t arrived = NowMs() + kUnderwayMs;
  for (int64_t now = NowMs(); now < arrived; now = NowMs())
    AwaitSignal(task, static_cast<int>(arrived - now));
}

// Its state is kept, and nothing is left to do here. The end of a script is the end of its job, for which
// Slurm's configuration says that it is to be started again. The end of a step would let the script
// continue with its next command: there the whole job is requeued.
int Leave(Task& task, bool hold) {
  const char* const job = std::getenv("SLURM_JOB_ID");
  const int code = hold ? kHoldExit : kRequeueExit;
  if (task.of_script || job == nullptr) return code;
  task.init = 0;
  AwaitOutput(task);
  for (;;) {
    const Requeue answer = AskForRequeue(job, hold, task.mask_before);
    if (answer == Requeue::kRefused) return code;
    AwaitSignal(task, answer == Requeue::kDone ? kForEver : kRetryMs);
  }
}

// It is unknown whether there is a checkpoint. The first start has none; after a requeue the job's work
// may be in one that the next start finds.
int GoOnWithoutShim(Task& task) {
  if (Restarts() == 0 && !task.of_gang) BecomeCommand(task);
  std::fprintf(stderr, "siding: this node's agent could not be asked for a %s; the job is not started\n",
               Restarts() == 0 ? "network" : "checkpoint");
  return Leave(task, AfterFailedStart(static_cast<int>(Restarts())) == StepWord::kHold);
}

int Run(Task& task) {
  // A terminal cannot be put into an image, and neither can a connection to Slurm's daemons.
  const bool has_terminal = isatty(0) == 1 || isatty(1) == 1 || isatty(2) == 1;
  if (has_terminal && task.of_gang) {
    std::fprintf(stderr, "siding: --siding-connections=keep is not for tasks with a terminal (srun --pty)\n");
    return 1;
  }
  if (has_terminal || (!task.of_script && IsMpiRank())) BecomeCommand(task);
  StepMessage word{};
  if (!HandOver(task.shim) || !NextWord(task, word)) return GoOnWithoutShim(task);
  if (word.word == StepWord::kComeBack || word.word == StepWord::kHold)
    return Leave(task, word.word == StepWord::kHold);
  if (word.word != StepWord::kStarted) BecomeCommand(task);
  task.init = word.first;
  const bool told = NextWord(task, word);
  const pid_t init = task.init;
  if (!told) {
    kill(init, SIGKILL);
    EndBySignal(SIGKILL);
  }
  if (word.word == StepWord::kComeBack || word.word == StepWord::kHold)
    return Leave(task, word.word == StepWord::kHold);
  if (word.second != 0) EndBySignal(word.second);
  return word.first;
}

int Main(int argc, char** argv) {
  if (argc <= kTaskArguments) {
    std::fprintf(
        stderr,
        "usage: siding-slurm-task FD script|step|gang COMMAND [ARGUMENT...] (started by siding's plugin)\n");
    return 2;
  }
  Task task;
  task.shim = std::atoi(argv[1]);
  task.of_script = std::strcmp(argv[2], kTaskOfScript) == 0;
  task.of_gang = std::strcmp(argv[2], kTaskOfGang) == 0;
  task.command = argv + kTaskArguments;
  sigset_t taken;
  sigemptyset(&taken);
  for (int number : kForwarded) sigaddset(&taken, number);
  sigprocmask(SIG_BLOCK, &taken, &task.mask_before);
  task.signals = signalfd(-1, &taken, SFD_CLOEXEC);
  if (task.signals < 0 && !task.of_gang) BecomeCommand(task);
  return Run(task);
}

}  // namespace
}  // namespace siding::spank

int main(int argc, char** argv) { return siding::spank::Main(argc, argv); }
