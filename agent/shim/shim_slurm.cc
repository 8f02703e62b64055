#include "agent/shim/shim_slurm.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "absl/strings/match.h"
#include "agent/shim/failed_start.h"
#include "agent/shim/leave_network.h"
#include "agent/shim/shim.h"
#include "agent/shim/shim_status.h"
#include "agent/shim/slurm_gpus.h"
#include "agent/shim/slurm_task.h"
#include "agent/task/ending.h"
#include "agent/task/json_file.h"
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

// How long an agent may take to accept a task: longer than it takes to look for checkpoints on a slow file
// system. For its orders there is no limit: an image is verified before, however large it is.
constexpr int kAcceptancePatienceMs = 30'000;
constexpr int kForEver = -1;

// The agent's next word. An error if it says no, has ended or does not answer, or if the task has gone
// meanwhile.
absl::StatusOr<spank::Answer> NextAnswer(const SlurmTask& task, int patience_ms) {
  pollfd ready[3] = {
      {spank::kShimAgentFd, POLLIN, 0}, {spank::kShimTaskFd, POLLRDHUP, 0}, {task.pidfd(), POLLIN, 0}};
  int count;
  do count = poll(ready, 3, patience_ms);
  while (count < 0 && errno == EINTR);
  if (count == 0) return absl::DeadlineExceededError("the agent does not answer");
  if (ready[1].revents != 0 || ready[2].revents != 0) return absl::CancelledError("Slurm's task has ended");
  char text[spank::kMaxMessage];
  spank::Answer answer;
  const ssize_t size = recv(spank::kShimAgentFd, text, sizeof text, 0);
  if (size <= 0) return absl::UnavailableError("the agent has ended");
  if (!spank::ParseAnswer(text, static_cast<size_t>(size), answer))
    return absl::UnimplementedError("the agent is of another version");
  const bool no = answer.kind == spank::AnswerKind::kRefused || answer.kind == spank::AnswerKind::kFailed;
  if (no) return absl::FailedPreconditionError(answer.reason);
  return answer;
}

absl::StatusOr<std::string> ReceiveRegistration() {
  std::string text(spank::kMaxMessage, '\0');
  const ssize_t size = recv(spank::kShimTaskFd, text.data(), text.size(), 0);
  if (size <= 0) return absl::InternalError("there is no registration");
  text.resize(static_cast<size_t>(size));
  return text;
}

// Registers the task as the plugin wrote it, still as root; returns the task's folder.
absl::StatusOr<std::string> Register(const SlurmTask& task, const std::string& registration,
                                     uint32_t restarts) {
  SIDING_ASSIGN_OR_RETURN(const std::string command, task.Read("cmdline"));
  SIDING_ASSIGN_OR_RETURN(const std::string environment, task.Read("environ"));
  const std::string text = absl::StrCat(registration, spank::kRestarts, " ", restarts, "\n", spank::kCommand,
                                        " ", CommandChecksum(SplitAtZeros(command, spank::kTaskArguments)),
                                        "\n", GpuLines(SplitAtZeros(environment, 0), DevicesToOpen("/dev")));
  if (send(spank::kShimAgentFd, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
    return ErrnoError(errno, "the agent does not listen");
  SIDING_ASSIGN_OR_RETURN(const spank::Answer answer, NextAnswer(task, kAcceptancePatienceMs));
  return std::string(answer.folder);
}

void Tell(StepWord word, int32_t first = 0, int32_t second = 0) {
  const StepMessage message{word, first, second};
  // A task that has gone does not listen, and does not need to.
  if (send(spank::kShimTaskFd, &message, sizeof message, MSG_NOSIGNAL) < 0) return;
}

// One line to where the user looks.
void TellUser(int error_output, const std::string& words) {
  const std::string line = "siding: " + words + "\n";
  if (write(error_output, line.data(), line.size()) < 0) fprintf(stderr, "siding-shim: %s\n", words.c_str());
}

bool HasEnded(const SlurmTask& parent) {
  pollfd ready[2] = {{spank::kShimTaskFd, POLLRDHUP, 0}, {parent.pidfd(), POLLIN, 0}};
  return poll(ready, 2, 0) > 0;
}

absl::StatusOr<ShimTask> Start(const SlurmTask& parent, const agent::ShimRequest& request,
                               const std::string& folder, const std::array<UniqueFd, 3>& stdio) {
  SIDING_ASSIGN_OR_RETURN(InitPlan plan, ReadSlurmTask(parent, request));
  SIDING_ASSIGN_OR_RETURN(const std::string script, CopyBatchScript(plan.command[0], request));
  const std::array<int, 3> fds = {stdio[0].get(), stdio[1].get(), stdio[2].get()};
  if (request.has_restore()) return RestoreTask(request, folder, fds, [&] { return HasEnded(parent); });
  if (!request.notice().empty()) TellUser(stdio[2].get(), request.notice());
  if (!script.empty()) plan.command[0] = script;
  plan.passes_on = PassesOn::kQueued;
  plan.first_process = NamesOf(request).FirstProcess();
  plan.refuse_io_uring = RefusesIoUring(request.spec());
  SetGpuCollectives(request.spec(), plan.environment);
  SetRankOfStep(request, plan.environment);
  SIDING_ASSIGN_OR_RETURN(UniqueFd network, MakeTaskNetwork(request));
  plan.network = network.get();
  plan.stdio = fds;
  plan.before_it_runs = [&folder](pid_t init) { return WriteInit(folder, init); };
  SIDING_ASSIGN_OR_RETURN(const pid_t init, StartInit(std::move(plan)));
  return ShimTask{init, std::move(network), {}};
}

// Until the init has ended, and no longer: its number, which the task sends signals to, stays its own. If the
// task ends first, there is no receiver for the result: the init ends, too. Another process may have its end
// of the socket pair, so the task's process is checked as well.
agent::ShimExit AwaitEnd(pid_t init, const SlurmTask& parent) {
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, init, 0)));
  pollfd ready[3] = {
      {pidfd.get(), POLLIN, 0}, {spank::kShimTaskFd, POLLRDHUP, 0}, {parent.pidfd(), POLLIN, 0}};
  while (poll(ready, 3, -1) < 0 && errno == EINTR) {
  }
  if (ready[0].revents == 0) kill(init, SIGKILL);
  siginfo_t info = {};
  while (waitid(P_PID, static_cast<id_t>(init), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  return ExitOf(info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0) : W_EXITCODE(0, info.si_status));
}

// What the agent remembers of the task; nothing: it has not got that far.
std::optional<agent::TaskRecord> ReadRecord(const std::string& folder) {
  auto record = ReadJsonFile<agent::TaskRecord>(folder + "/task.json");
  return record.ok() ? std::optional(*std::move(record)) : std::nullopt;
}

// It has been started, and its network could not be joined to those of its peers. Empty: it could.
std::string WhyPutOff(const std::optional<agent::TaskRecord>& record) {
  return record && record->put_off() ? record->report().not_joined() : "";
}

// The agent concludes the same from the same facts when it sees this process end.
StepWord WhatBecomesOf(uint32_t restarts, const std::optional<agent::TaskRecord>& record,
                       const agent::ShimExit& exit) {
  if (record && record->put_off()) return JudgePutOff(restarts, &*record);
  // The image is visible before CRIU ends the processes; that it is whole is checked when it is needed.
  const bool comes_back = record && JudgeEnding(*record, &exit, [] { return true; }) != Ending::kItsOwn;
  return comes_back ? StepWord::kComeBack : StepWord::kEnded;
}

// The task that the agent has made of the registration; `folder` is empty if it has not.
void TellFailure(const SlurmTask& parent, const SlurmHandover& handover, const std::string& folder,
                 bool of_gang, const absl::Status& why) {
  if (HasEnded(parent)) return;
  const auto record = ReadRecord(folder);
  const agent::TaskRecord* const known = record ? &*record : nullptr;
  const StepWord word =
      of_gang ? JudgePutOff(handover.said.restarts, known) : JudgeFailedStart(handover.said.restarts, known);
  const std::string put_off = WhyPutOff(record);
  TellUser(handover.stdio[2].get(),
           TellFailedStart(word, put_off.empty() ? why : absl::FailedPreconditionError(put_off)));
  Tell(word);
}

// Everything up to a task that runs.
absl::StatusOr<ShimTask> Begin(const SlurmTask& parent, const std::string& folder,
                               const SlurmHandover& handover, agent::ShimRequest& request) {
  if (const auto go = NextAnswer(parent, kForEver); !go.ok()) return go.status();
  SIDING_ASSIGN_OR_RETURN(request, ReadJsonFile<agent::ShimRequest>(folder + "/request.json"));
  auto task = Start(parent, request, folder, handover.stdio);
  if (!task.ok()) RemoveBatchScript(request);
  return task;
}

// From the registration to the end of the task. An error if it did not start. `folder` is the task's, once
// there is one.
absl::Status Shepherd(const SlurmTask& parent, const SlurmHandover& handover, const std::string& registration,
                      std::string& folder) {
  SIDING_RETURN_IF_ERROR(JoinCgroupsOf(parent));
  SIDING_ASSIGN_OR_RETURN(folder, Register(parent, registration, handover.said.restarts));
  SIDING_ASSIGN_OR_RETURN(const UniqueFd lock, TakeLock(folder));
  SIDING_RETURN_IF_ERROR(WriteShim(folder));
  agent::ShimRequest request;
  const auto task = Begin(parent, folder, handover, request);
  SIDING_RETURN_IF_ERROR(WriteStart(folder, task, request.has_restore()));
  if (!task.ok()) return task.status();
  Tell(StepWord::kStarted, task->init);
  const agent::ShimExit exit = AwaitEnd(task->init, parent);
  if (task->network.valid()) LeaveNetwork(task->network.get(), exit, [&] { return HasEnded(parent); });
  const absl::Status written = WriteExit(folder, exit);
  RemoveBatchScript(request);
  const auto record = ReadRecord(folder);
  const StepWord word = WhatBecomesOf(handover.said.restarts, record, exit);
  if (const std::string why = WhyPutOff(record); !why.empty())
    TellUser(handover.stdio[2].get(), TellFailedStart(word, absl::FailedPreconditionError(why)));
  Tell(word, exit.code(), exit.signal());
  while (waitpid(task->init, nullptr, 0) < 0 && errno == EINTR) {
  }
  // Slurm knows how it ended; the agent takes it for lost.
  if (!written.ok()) fprintf(stderr, "siding-shim: %s\n", std::string(written.message()).c_str());
  return absl::OkStatus();
}

}  // namespace

absl::Status RunForSlurm() {
  fcntl(spank::kShimTaskFd, F_SETFD, FD_CLOEXEC);
  fcntl(spank::kShimAgentFd, F_SETFD, FD_CLOEXEC);
  fcntl(spank::kShimAgentFd, F_SETFL, 0);  // the plugin must not wait for the agent; this process may
  // What Slurm sends to every process of a step is not meant for this one.
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  signal(SIGCHLD, SIG_DFL);  // ignored, it would make the kernel forget how the command ended
  SIDING_ASSIGN_OR_RETURN(const SlurmTask parent, SlurmTask::Parent(spank::kShimTaskFd));
  SIDING_ASSIGN_OR_RETURN(const std::string registration, ReceiveRegistration());
  SIDING_ASSIGN_OR_RETURN(const SlurmHandover handover, ReceiveHandover(spank::kShimTaskFd));
  std::string folder;
  absl::Status status = Shepherd(parent, handover, registration, folder);
  const bool of_gang = absl::StrContains(registration, absl::StrCat("\n", spank::kKeepConnections, " 1\n"));
  if (!status.ok()) TellFailure(parent, handover, folder, of_gang, status);
  return status;
}

}  // namespace siding
