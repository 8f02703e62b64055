#include "agent/shim/shim_status.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "agent/criu/criu.h"
#include "agent/os/processes.h"
#include "agent/shim/gang_endpoint.h"
#include "agent/shim/last_word.h"
#include "agent/shim/outside.h"
#include "agent/task/json_file.h"
#include "common/clock.h"
#include "common/fault.h"
#include "common/status.h"

namespace siding {
namespace {

agent::ProcessRef Identity(pid_t pid) {
  agent::ProcessRef ref;
  ref.set_pid(pid);
  if (const auto stat = ReadProcessStat(pid)) ref.set_start_time(stat->start_time);
  return ref;
}

// Whether a task that did not start might do so elsewhere, or later: what the job asked for is not to blame.
// Of CRIU's failures most are as good as the image.
bool IsNodeProblem(const absl::Status& status, bool restore) {
  if (restore) return absl::IsResourceExhausted(status) || absl::IsUnavailable(status);
  return !absl::IsFailedPrecondition(status) && !absl::IsInvalidArgument(status);
}

// A folder that cannot be written is the node's fault, whatever the system calls it: read-only, for one, is
// "failed precondition", as a command that does not exist.
absl::Status OfTheNode(const absl::Status& status) {
  return status.ok() ? status : absl::UnavailableError(status.message());
}

template <class Message>
absl::Status WriteLastMessage(const std::string& folder, const std::string& name, const Message& message) {
  SIDING_ASSIGN_OR_RETURN(const std::string text, ToJson(message));
  return WriteLastWord(folder, name, text + "\n");
}

// The longest message that fits into the room, however it is quoted.
constexpr size_t kShortMessage = kLastWordRoom / 8;

absl::Status WriteFailed(const std::string& folder, agent::ShimFailed failed) {
  absl::Status written = WriteLastMessage(folder, "failed.json", failed);
  if (written.ok() || failed.message().size() <= kShortMessage) return written;
  failed.mutable_message()->resize(kShortMessage);
  return WriteLastMessage(folder, "failed.json", failed);
}

}  // namespace

absl::Status WriteShim(const std::string& folder) {
  SIDING_RETURN_IF_ERROR(WriteJsonFile(folder + "/shim.json", Identity(getpid())));
  return MakeRoomForLastWord(folder);
}

absl::Status WriteInit(const std::string& folder, pid_t init) {
  return OfTheNode(WriteJsonFile(folder + "/init.json", Identity(init)));
}

absl::Status WriteStart(const std::string& folder, const absl::StatusOr<ShimTask>& task, bool restore) {
  if (!task.ok()) {
    agent::ShimFailed failed;
    failed.set_message(std::string(task.status().message()));
    failed.set_outside_problem(IsOutsideProblem(task.status()));
    failed.set_node_problem(!failed.outside_problem() && IsNodeProblem(task.status(), restore));
    failed.set_image_refused(IsRefusal(task.status()));
    return WriteFailed(folder, std::move(failed));
  }
  agent::ShimRunning running;
  // The child is not waited for yet, so even if it has ended its stat is still there.
  *running.mutable_init() = Identity(task->init);
  running.set_started_us(ToMicros(SystemClock().Now()));
  for (const std::string& note : task->notes) running.add_notes(note);
  // It may have ended by the time that an agent could look.
  if (task->network.valid()) {
    const auto endpoint = EndpointOf(task->network.get());
    if (endpoint.ok()) *running.mutable_endpoint() = ToProto(*endpoint);
  }
  absl::Status written = FaultAt<"shim.running: a task runs, which is written nowhere">();
  if (written.ok()) written = WriteJsonFileDurably(folder + "/running.json", running);
  if (!written.ok()) {
    kill(task->init, SIGKILL);
    waitpid(task->init, nullptr, 0);
  }
  return written;
}

agent::ShimExit ExitOf(int wait_status) {
  agent::ShimExit exit;
  if (WIFSIGNALED(wait_status)) {
    exit.set_signal(WTERMSIG(wait_status));
  } else if (const int code = WEXITSTATUS(wait_status); code > 128 && code <= 128 + SIGRTMAX) {
    exit.set_signal(code - 128);
  } else {
    exit.set_code(code);
  }
  return exit;
}

absl::Status WriteExit(const std::string& folder, const agent::ShimExit& exit) {
  return WriteLastMessage(folder, "exit.json", exit);
}

}  // namespace siding
