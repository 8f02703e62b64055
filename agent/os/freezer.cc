#include "agent/os/freezer.h"

#include <signal.h>
#include <unistd.h>

#include <sstream>
#include <vector>

#include "agent/os/cgroups.h"
#include "agent/os/processes.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

std::string StateFile(FreezerKind kind) {
  return kind == FreezerKind::kCgroup2 ? "/cgroup.events" : "/freezer.state";
}
std::string ControlFile(FreezerKind kind) {
  return kind == FreezerKind::kCgroup2 ? "/cgroup.freeze" : "/freezer.state";
}

// A folder in which a freezer really is: made, looked at.
bool Usable(FreezerKind kind, const std::string& root) {
  return MakeDirectories(root).ok() && access((root + ControlFile(kind)).c_str(), W_OK) == 0;
}

bool AllStopped(pid_t init) {
  for (pid_t pid : ProcessTree(init)) {
    const auto stat = ReadProcessStat(pid);
    if (stat && stat->state != 'T' && stat->state != 'Z') return false;
  }
  return true;
}

}  // namespace

std::string ToString(FreezerKind kind) {
  switch (kind) {
    case FreezerKind::kCgroup2:
      return "cgroup v2";
    case FreezerKind::kCgroup1:
      return "cgroup v1 freezer";
    case FreezerKind::kSignals:
      return "SIGSTOP";
  }
  return "";
}

bool IsFrozenText(FreezerKind kind, const std::string& text) {
  if (kind == FreezerKind::kCgroup2) return ("\n" + text).find("\nfrozen 1") != std::string::npos;
  return text.rfind("FROZEN", 0) == 0;
}

Freezer Freezer::Detect(const std::string& node) {
  CgroupMounts mounts = ReadCgroupMounts();
  const std::string v1 = mounts.v1["freezer"];
  const std::string below = "/siding/" + node;
  if (!mounts.v2.empty() && Usable(FreezerKind::kCgroup2, mounts.v2 + below)) {
    return Freezer(FreezerKind::kCgroup2, mounts.v2 + below);
  }
  if (!v1.empty() && Usable(FreezerKind::kCgroup1, v1 + below)) {
    return Freezer(FreezerKind::kCgroup1, v1 + below);
  }
  return Freezer(FreezerKind::kSignals, "");
}

std::string Freezer::CgroupPath(const std::string& task) const {
  return kind_ == FreezerKind::kSignals ? "" : root_ + "/" + task;
}

std::string Freezer::ShimCgroupPath(const std::string& task) const {
  return kind_ == FreezerKind::kCgroup2 ? CgroupPath(task) + ".shim" : "";
}

std::string Freezer::HoldCgroup(const std::string& task) const {
  return kind_ == FreezerKind::kCgroup2 ? CgroupPath(task) : "";
}

absl::StatusOr<std::string> Freezer::MakeCgroup(const std::string& task) const {
  for (const std::string& path : {ShimCgroupPath(task), CgroupPath(task)}) {
    if (!path.empty()) SIDING_RETURN_IF_ERROR(MakeDirectories(path));
  }
  return CgroupPath(task);
}

absl::Status Freezer::RemoveCgroup(const std::string& task) const {
  const absl::Status shims = RemoveCgroupFolder(ShimCgroupPath(task));
  const absl::Status tasks = RemoveCgroupFolder(CgroupPath(task));
  return tasks.ok() ? shims : tasks;
}

absl::Status Freezer::Order(const std::string& task, pid_t init, bool freeze) const {
  switch (kind_) {
    case FreezerKind::kCgroup2:
      return WriteCgroupFile(CgroupPath(task) + ControlFile(kind_), freeze ? "1" : "0");
    case FreezerKind::kCgroup1:
      return WriteCgroupFile(CgroupPath(task) + ControlFile(kind_), freeze ? "FROZEN" : "THAWED");
    case FreezerKind::kSignals:
      for (pid_t pid : ProcessTree(init)) kill(pid, freeze ? SIGSTOP : SIGCONT);
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

bool Freezer::IsFrozen(const std::string& task, pid_t init) const {
  if (kind_ == FreezerKind::kSignals) return AllStopped(init);
  const auto text = ReadFile(CgroupPath(task) + StateFile(kind_));
  return text.ok() && IsFrozenText(kind_, *text);
}

absl::Status Freezer::Freeze(const std::string& task, pid_t init, Duration timeout) const {
  SIDING_RETURN_IF_ERROR(Order(task, init, true));
  const bool frozen = PollUntil(
      [&] {
        if (IsFrozen(task, init)) return true;
        // A process that was forked meanwhile has not been told; v1 wants to be asked again, too.
        if (kind_ != FreezerKind::kCgroup2) Order(task, init, true).IgnoreError();
        return false;
      },
      timeout);
  if (frozen) return absl::OkStatus();
  Order(task, init, false).IgnoreError();
  return absl::DeadlineExceededError("not all processes could be frozen (" + ToString(kind_) + ")");
}

absl::Status Freezer::Thaw(const std::string& task, pid_t init, Duration timeout) const {
  SIDING_RETURN_IF_ERROR(Order(task, init, false));
  const auto thawed = [&] { return kind_ == FreezerKind::kSignals || !IsFrozen(task, init); };
  if (PollUntil(thawed, timeout)) return absl::OkStatus();
  return absl::DeadlineExceededError("the processes could not be thawed (" + ToString(kind_) + ")");
}

bool Freezer::IsEmpty(const std::string& task) const {
  if (kind_ == FreezerKind::kSignals) return true;
  const auto procs = ReadFile(CgroupPath(task) + "/cgroup.procs");
  return procs.ok() ? procs->empty() : absl::IsNotFound(procs.status());
}

void Freezer::KillAll(const std::string& task, pid_t init) const {
  if (init > 0) kill(init, SIGKILL);
  if (kind_ == FreezerKind::kSignals) return;
  // All of them at once, the frozen as well, and those that are forked meanwhile. Kernels before 5.14 lack
  // it.
  const bool all =
      kind_ == FreezerKind::kCgroup2 && WriteCgroupFile(CgroupPath(task) + "/cgroup.kill", "1").ok();
  const auto procs = all ? absl::StatusOr<std::string>("") : ReadFile(CgroupPath(task) + "/cgroup.procs");
  std::istringstream pids(procs.ok() ? *procs : "");
  for (pid_t pid; pids >> pid;) kill(pid, SIGKILL);
  Order(task, init, false).IgnoreError();  // the frozen cannot die
}

}  // namespace siding
