// siding-shim TASKDIR: brings one task to life as TASKDIR/request.json says, waits for its end, and leaves
// word of both in the folder. It outlives the agent that started it.
//
// siding-shim --slurm: the same for a task that Slurm has started; see shim_slurm.h.
//
// siding-shim --rehearse FOLDER: see shim_rehearse.h.
#include <fcntl.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "agent/os/processes.h"
#include "agent/shim/last_word.h"
#include "agent/shim/leave_network.h"
#include "agent/shim/shim.h"
#include "agent/shim/shim_rehearse.h"
#include "agent/shim/shim_slurm.h"
#include "agent/shim/shim_status.h"
#include "agent/task/json_file.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/status.h"
#include "spank/step_wire.h"

namespace siding {
namespace {

volatile sig_atomic_t told_to_end = 0;

void NoteTold(int) { told_to_end = 1; }

// Out of the agent's cgroup, with which a service manager may end all that is in there.
absl::Status JoinCgroup(const std::string& cgroup) {
  if (cgroup.empty()) return absl::OkStatus();
  const std::string path = cgroup + "/cgroup.procs";
  const UniqueFd procs(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!procs.valid() || write(procs.get(), "0", 1) != 1) return ErrnoError(errno, "join " + path);
  return absl::OkStatus();
}

absl::Status Run(const std::string& folder) {
  fcntl(3, F_SETFD, FD_CLOEXEC);  // the lock on shim.lock, handed over by the agent: ours alone
  // Not the agent's, in which jobs of different users would find each other's keys. Where the kernel has
  // none, or a container may not ask for one, no job has one.
  syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  SIDING_RETURN_IF_ERROR(WriteShim(folder));
  SIDING_ASSIGN_OR_RETURN(const auto request, ReadJsonFile<agent::ShimRequest>(folder + "/request.json"));
  // It is of use without.
  if (const absl::Status joined = JoinCgroup(request.shim_cgroup()); !joined.ok())
    fprintf(stderr, "siding-shim: %s\n", std::string(joined.message()).c_str());
  SIDING_RETURN_IF_ERROR(FaultAt<"shim.begun: a shim is about to start its task">());
  const auto task = request.has_restore() ? RestoreTask(request, folder) : LaunchTask(request, folder);
  SIDING_RETURN_IF_ERROR(WriteStart(folder, task, request.has_restore()));
  if (!task.ok()) return absl::OkStatus();
  FaultHere<"shim.told: it is written that the task runs">();
  int status = 0;
  while (waitpid(task->init, &status, 0) < 0 && errno == EINTR) {
  }
  agent::ShimExit exit = ExitOf(status);
  if (task->network.valid()) LeaveNetwork(task->network.get(), exit, [] { return told_to_end != 0; });
  exit.set_told_to_end(told_to_end != 0);
  const auto write = [&]() -> absl::Status {
    SIDING_RETURN_IF_ERROR(FaultAt<"shim.ended: the task has ended, which is written nowhere">());
    return WriteExit(folder, exit);
  };
  SIDING_RETURN_IF_ERROR(WriteUntilDone(write, [] { return told_to_end != 0; }));
  FaultHere<"shim.over: it is written how the task ended">();
  return absl::OkStatus();
}

}  // namespace
}  // namespace siding

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--fault-points") == 0) {
    printf("%s", siding::ListFaultPoints().c_str());
    return 0;
  }
  if (argc == 3 && strcmp(argv[1], siding::kRehearse) == 0) {
    const absl::Status armed = siding::ArmFaults({"agent", "store"});
    return armed.ok() ? siding::Rehearse(argv[2]) : 2;
  }
  const bool slurm = argc == 2 && strcmp(argv[1], siding::spank::kShimForSlurm) == 0;
  if (argc != 2) {
    fprintf(stderr,
            "usage: siding-shim TASKDIR | --slurm | --rehearse FOLDER | --fault-points "
            "(started by siding-agent and by siding's Slurm plugin)\n");
    return 2;
  }
  // What is meant for the agent's terminal or service must not end the tasks.
  for (int signal_number : {SIGINT, SIGHUP, SIGPIPE}) signal(signal_number, SIG_IGN);
  // A machine that shuts down sends it to all, and stops them before: it is known here before the task can
  // have ended. The end that follows is not the task's own.
  signal(SIGTERM, siding::NoteTold);
  // With Slurm the environment is the user's.
  absl::Status status = slurm ? absl::OkStatus() : siding::ArmFaults({"agent", "store"});
  if (status.ok()) status = slurm ? siding::RunForSlurm() : siding::Run(argv[1]);
  if (!status.ok()) {
    fprintf(stderr, "siding-shim: %s: %s\n", argv[1], std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}
