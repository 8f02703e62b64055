#include "agent/launch/shim_slurm.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "agent/host/task_ending.h"
#include "agent/launch/json_file.h"
#include "agent/launch/shim.h"
#include "agent/launch/shim_word.h"
#include "agent/launch/slurm_task.h"
#include "common/files.h"
#include "common/status.h"
#include "spank/messages.h"
#include "spank/step_wire.h"

namespace siding {
namespace {

using spank::StepMessage;
using spank::StepWord;

// The lock that tells the agent that this shim lives. It appears under its name only when it is held.
absl::StatusOr<UniqueFd> TakeLock(const std::string& folder) {
  const std::string draft = folder + "/shim.lock.new";
  UniqueFd lock(open(draft.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid() || flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return ErrnoError(errno, "lock " + draft);
  if (rename(draft.c_str(), (folder + "/shim.lock").c_str()) != 0)
    return ErrnoError(errno, "rename " + draft);
  return lock;
}

// Waits until the agent has written its orders; an error if there will be none, or if the task has gone.
absl::Status AwaitOrders(int agent, int task) {
  pollfd ready[2] = {{agent, POLLIN, 0}, {task, POLLRDHUP, 0}};
  while (poll(ready, 2, -1) < 0 && errno == EINTR) {
  }
  if (ready[1].revents != 0) return absl::CancelledError("Slurm's task has ended");
  char text[spank::kMaxMessage];
  spank::Answer answer;
  const ssize_t size = recv(agent, text, sizeof text, 0);
  if (size <= 0 || !spank::ParseAnswer(text, static_cast<size_t>(size), answer))
    return absl::UnavailableError("the agent has ended");
  if (answer.kind == spank::AnswerKind::kGo) return absl::OkStatus();
  return absl::FailedPreconditionError(answer.reason);
}

void Tell(int task, StepWord word, int32_t first = 0, int32_t second = 0) {
  const StepMessage message{word, first, second};
  // A task that has gone does not listen, and does not need to.
  if (send(task, &message, sizeof message, MSG_NOSIGNAL) < 0) return;
}

absl::StatusOr<ShimTask> Start(const agent::ShimRequest& request, const std::string& folder,
                               const std::string& signals, const std::array<UniqueFd, 3>& stdio) {
  SIDING_RETURN_IF_ERROR(JoinCgroupsOf(getppid()));
  SIDING_ASSIGN_OR_RETURN(InitPlan plan, ReadSlurmTask(getppid(), request));
  SIDING_ASSIGN_OR_RETURN(const std::string script, CopyBatchScript(plan.command[0], request));
  const std::array<int, 3> fds = {stdio[0].get(), stdio[1].get(), stdio[2].get()};
  if (request.has_restore()) return RestoreTask(request, folder, fds);
  if (!script.empty()) plan.command[0] = script;
  plan.passes_signals_on = signals == spank::kSignalsTask;
  plan.stdio = fds;
  SIDING_ASSIGN_OR_RETURN(const pid_t init, StartInit(std::move(plan)));
  return ShimTask{init, {}};
}

// Until the init has ended. Should the task go before, nobody would be left to be told: the init ends, too.
agent::ShimExit AwaitEnd(pid_t init, int task) {
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, init, 0)));
  pollfd ready[2] = {{pidfd.get(), POLLIN, 0}, {task, POLLRDHUP, 0}};
  while (poll(ready, 2, -1) < 0 && errno == EINTR) {
  }
  if (ready[0].revents == 0) kill(init, SIGKILL);
  int status = 0;
  while (waitpid(init, &status, 0) < 0 && errno == EINTR) {
  }
  return ExitOf(status);
}

// The agent concludes the same from the same facts when it sees this process end.
bool ComesBack(const std::string& folder, const agent::ShimExit& exit) {
  const auto record = ReadJsonFile<agent::TaskRecord>(folder + "/task.json");
  // The image is visible before CRIU ends the processes; that it is whole is checked when it is needed.
  return record.ok() && JudgeEnding(*record, &exit, [] { return true; }) != Ending::kItsOwn;
}

// To where the user looks.
void TellUser(int error_output, const absl::Status& why) {
  const std::string line =
      absl::StrCat("siding: ", why.message(), "; the command starts from its beginning\n");
  if (write(error_output, line.data(), line.size()) < 0) return;
}

}  // namespace

absl::Status RunForSlurm(const std::string& folder, const std::string& signals) {
  constexpr int kTask = spank::kShimTaskFd;
  constexpr int kAgent = spank::kShimAgentFd;
  fcntl(kTask, F_SETFD, FD_CLOEXEC);
  fcntl(kAgent, F_SETFD, FD_CLOEXEC);
  // What Slurm sends to every process of a step is not meant for this one.
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  SIDING_ASSIGN_OR_RETURN(const UniqueFd lock, TakeLock(folder));
  SIDING_RETURN_IF_ERROR(WriteShim(folder));
  const auto stdio = ReceiveStdio(kTask);
  absl::Status ordered = stdio.ok() ? AwaitOrders(kAgent, kTask) : stdio.status();
  const auto request = ordered.ok() ? ReadJsonFile<agent::ShimRequest>(folder + "/request.json") : ordered;
  const absl::StatusOr<ShimTask> task =
      request.ok() ? Start(*request, folder, signals, *stdio) : request.status();
  const absl::Status written = WriteStart(folder, task);
  if (!task.ok() || !written.ok()) {
    if (stdio.ok()) TellUser((*stdio)[2].get(), task.ok() ? written : task.status());
    if (request.ok()) RemoveBatchScript(*request);
    Tell(kTask, StepWord::kNotStarted);
    return task.ok() ? written : task.status();
  }
  Tell(kTask, StepWord::kStarted, task->init);
  const agent::ShimExit exit = AwaitEnd(task->init, kTask);
  const absl::Status said = WriteExit(folder, exit);
  RemoveBatchScript(*request);
  const bool back = ComesBack(folder, exit);
  Tell(kTask, back ? StepWord::kComeBack : StepWord::kEnded, exit.code(), exit.signal());
  return said;
}

}  // namespace siding
