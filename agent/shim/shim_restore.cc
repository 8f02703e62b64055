#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "agent/checkpoint/held_files.h"
#include "agent/checkpoint/open_files.h"
#include "agent/checkpoint/recreated_names.h"
#include "agent/checkpoint/shared_memory.h"
#include "agent/checkpoint/stdio.h"
#include "agent/checkpoint/thread_settings.h"
#include "agent/criu/criu.h"
#include "agent/os/account.h"
#include "agent/os/processes.h"
#include "agent/shim/outside.h"
#include "agent/shim/shim.h"
#include "agent/shim/shim_status.h"
#include "common/fault.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr Duration kEndPatience = std::chrono::seconds(10);
constexpr Duration kWhile = std::chrono::hours(1);
constexpr Bytes kRoomForCriu{64 << 20};  // to end its work

// What CRIU has made of a task and leaves behind if it dies on the way: our children, as the task would be.
void EndChildren() {
  for (pid_t pid : ProcessTree(getpid())) {
    if (pid != getpid()) kill(pid, SIGKILL);
  }
  PollUntil(
      [] {
        while (waitpid(-1, nullptr, WNOHANG) > 0) {
        }
        return errno == ECHILD;
      },
      kEndPatience);
}

// What the processes need is looked for, and their files are put back, with their user's rights.
absl::StatusOr<FilesPutBack> PutBackAsUser(const agent::ShimRequest& request, const Account& account) {
  SIDING_ASSIGN_OR_RETURN(const auto files, OpenFilesFromJson(request.restore().files()));
  std::map<std::string, std::string> held;
  if (!request.restore().held().empty()) {
    SIDING_ASSIGN_OR_RETURN(held, HeldFromJson(request.restore().held()));
  }
  const FilesAsUser user(account);
  if (!user.ok()) return absl::PermissionDeniedError("cannot act as the job's user");
  if (absl::Status there = CheckIsThere(held); !there.ok()) return OutsideProblem(there);
  auto back = PutFilesBack(files, request.spec().append_files());
  if (!back.ok()) return OutsideProblem(back.status());
  return back;
}

// The shared memory of a task, put back. It leaves the node again with a restore that fails: the next one may
// be on another node.
class SharedMemoryPutBack {
 public:
  SharedMemoryPutBack(const agent::ShimRequest& request, const Account& account)
      : account_(account), mark_(NamesOf(request).SharedMemoryMark()) {}
  ~SharedMemoryPutBack() { RemoveSharedMemory(files_, account_, mark_); }
  SharedMemoryPutBack(const SharedMemoryPutBack&) = delete;
  SharedMemoryPutBack& operator=(const SharedMemoryPutBack&) = delete;

  absl::Status PutBack(const agent::ShimRequest& request) {
    if (request.restore().shared_memory().empty()) return absl::OkStatus();
    SIDING_ASSIGN_OR_RETURN(auto files, SharedMemoryFromJson(request.restore().shared_memory()));
    SIDING_RETURN_IF_ERROR(
        OutsideProblem(PutSharedMemoryBack(files, request.restore().image_folder(), account_, mark_)));
    files_ = std::move(files);
    return absl::OkStatus();
  }
  // The task has it from now on.
  void Keep() { files_.clear(); }

 private:
  const Account& account_;
  const std::string mark_;
  std::vector<SharedMemoryFile> files_;
};

// Around what CRIU has built, before the first instruction can add to it. CRIU itself is in there still, and
// what was on GPUs goes back by way of memory.
void CloseFence(const agent::ShimRequest& request) {
  const FenceLimits most = {Bytes{request.fence().most_memory()}, request.fence().most_processes()};
  const bool gpus = request.spec().per_node().gpus() > 0;
  FenceOf(request).Hold(most, gpus ? kRoomForDriver : kRoomForCriu);
}

// The agent finds the init, and so its network, and says when the other ranks have been restored, too. It
// ends all of this where that does not come to be.
absl::Status AwaitOthers(const std::string& folder, pid_t init, const std::function<bool()>& stopped) {
  SIDING_RETURN_IF_ERROR(WriteInit(folder, init));
  SIDING_RETURN_IF_ERROR(FaultAt<"shim.network: a rank is restored, and waits for the others">());
  const auto stat = ReadProcessStat(init);
  const uint64_t started = stat ? stat->start_time : 0;
  bool joined = false;
  const auto decided = [&] {
    joined = access((folder + "/" + kAllJoined).c_str(), F_OK) == 0;
    return joined || !IsAlive(init, started) || stopped();
  };
  while (!PollUntil(decided, kWhile)) {
  }
  return joined ? absl::OkStatus()
                : absl::CancelledError("it was ended before its other ranks were restored");
}

absl::Status PutSettingsBack(const agent::ShimRequest& request, pid_t init, std::vector<std::string>& notes) {
  if (request.restore().threads().empty()) return absl::OkStatus();
  SIDING_ASSIGN_OR_RETURN(const auto settings, ThreadSettingsFromJson(request.restore().threads()));
  for (std::string& note : PutThreadSettingsBack(init, settings)) notes.push_back(std::move(note));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ShimTask> RestoreTask(const agent::ShimRequest& request, const std::string& folder,
                                     const std::array<int, 3>& stdio, const std::function<bool()>& stopped) {
  SIDING_RETURN_IF_ERROR(MakeTaskTmpdir(request));
  ShimTask task;
  const Account account = AccountOf(request.spec().uid(), request.spec().gid());
  SIDING_ASSIGN_OR_RETURN(FilesPutBack files, PutBackAsUser(request, account));
  task.notes = std::move(files.notes);
  SharedMemoryPutBack shared_memory(request, account);
  SIDING_RETURN_IF_ERROR(shared_memory.PutBack(request));
  SIDING_RETURN_IF_ERROR(FaultAt<"shim.files: the files of a task are as they were at its checkpoint">());
  const std::unique_ptr<Criu> criu = NewCriu(request.restore().criu_path());
  if (files.rotated) {
    SIDING_ASSIGN_OR_RETURN(const CriuTraits traits, criu->Check());
    if (!traits.acts_on_files_as_user)
      return OutsideProblem(absl::FailedPreconditionError(
          "a log has been rotated, which this node's criu does not take; get-criu builds one that does"));
  }
  CriuRestore restore;
  restore.image_folder = request.restore().criu_folder();
  if (restore.image_folder.empty()) restore.image_folder = request.restore().image_folder();
  restore.work_folder = folder;
  restore.cgroups = CgroupsOf(request);
  // Always as root: the new processes are root's own until they become the user's, so nothing needs
  // CAP_SYS_RESOURCE, while only root may write the settings of an ipc namespace.
  restore.user = {};
  restore.files_as = account;
  restore.appended_are_checked = files.rotated;
  restore.temporary = request.restore().temporary();
  restore.may_resume = [&](pid_t init) -> absl::Status {
    SIDING_RETURN_IF_ERROR(OutsideProblem(CheckHeldFiles(init, account)));
    // What has been removed since it was opened.
    SIDING_RETURN_IF_ERROR(OutsideProblem(CheckRecreatedNames(init, account)));
    CloseFence(request);
    SIDING_RETURN_IF_ERROR(PutSettingsBack(request, init, task.notes));
    return WriteInit(folder, init);
  };
  SIDING_ASSIGN_OR_RETURN(const StdioPipes pipes, PipesFromText(request.restore().pipes()));
  for (int fd = 0; fd < 3; ++fd) {
    if (pipes[fd].empty()) continue;
    if (stdio[fd] < 0) return absl::FailedPreconditionError("there is no pipe for the task's output");
    restore.inherited.push_back({pipes[fd], stdio[fd]});
  }
  // Held until all ranks have been restored: what comes for a connection before it is there would end it.
  SIDING_ASSIGN_OR_RETURN(task.network, MakeTaskNetwork(request));
  const UniqueFd& network = task.network;
  if (network.valid()) {
    restore.inherited.push_back({kOwnNetwork, network.get()});
    restore.may_connect = [&](pid_t init) { return AwaitOthers(folder, init, stopped); };
  }
  const auto init = criu->Restore(restore);
  if (!init.ok()) {
    EndChildren();
    return init.status();
  }
  shared_memory.Keep();
  task.init = *init;
  return task;
}

}  // namespace siding
