// siding-shim TASKDIR: brings one task to life as TASKDIR/request.json says, waits for its end, and leaves
// word of both in the folder. It outlives the agent that started it.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "agent/launch/json_file.h"
#include "agent/launch/processes.h"
#include "agent/launch/shim.h"
#include "common/clock.h"

namespace siding {
namespace {

agent::ProcessRef Identity(pid_t pid) {
  agent::ProcessRef ref;
  ref.set_pid(pid);
  if (const auto stat = ReadProcessStat(pid)) ref.set_start_time(stat->start_time);
  return ref;
}

absl::Status WriteExit(const std::string& folder, int status) {
  agent::ShimExit exit;
  if (WIFSIGNALED(status)) {
    exit.set_signal(WTERMSIG(status));
  } else if (const int code = WEXITSTATUS(status); code > 128 && code <= 128 + SIGRTMAX) {
    exit.set_signal(code - 128);  // siding-init's way, and every shell's, to say so
  } else {
    exit.set_code(code);
  }
  return WriteJsonFileDurably(folder + "/exit.json", exit);
}

absl::Status Run(const std::string& folder) {
  SIDING_RETURN_IF_ERROR(WriteJsonFile(folder + "/shim.json", Identity(getpid())));
  SIDING_ASSIGN_OR_RETURN(const auto request, ReadJsonFile<agent::ShimRequest>(folder + "/request.json"));
  auto task = request.has_restore() ? RestoreTask(request, folder) : LaunchTask(request);
  if (!task.ok()) {
    agent::ShimFailed failed;
    failed.set_message(std::string(task.status().message()));
    return WriteJsonFileDurably(folder + "/failed.json", failed);
  }
  agent::ShimRunning running;
  // The child is not waited for yet, so even if it has ended its stat is still there.
  *running.mutable_init() = Identity(task->init);
  running.set_started_us(ToMicros(SystemClock().Now()));
  for (const std::string& note : task->notes) running.add_notes(note);
  absl::Status written = WriteJsonFileDurably(folder + "/running.json", running);
  if (!written.ok()) {
    // A task that nobody can find again must not run on.
    kill(task->init, SIGKILL);
    waitpid(task->init, nullptr, 0);
    return written;
  }
  int status = 0;
  while (waitpid(task->init, &status, 0) < 0 && errno == EINTR) {
  }
  return WriteExit(folder, status);
}

}  // namespace
}  // namespace siding

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: siding-shim TASKDIR\n");
    return 2;
  }
  fcntl(3, F_SETFD, FD_CLOEXEC);  // the lock on shim.lock, handed over by the agent: ours alone
  // What is meant for the agent's terminal or service must not end the tasks.
  for (int signal_number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(signal_number, SIG_IGN);
  const absl::Status status = siding::Run(argv[1]);
  if (!status.ok()) {
    fprintf(stderr, "siding-shim: %s: %s\n", argv[1], std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}
