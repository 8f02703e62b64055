// Freezing a task: by its cgroup's freezer (v2 or v1) or, without one, by SIGSTOP to each of its processes.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/units.h"

namespace siding {

enum class FreezerKind { kCgroup2, kCgroup1, kSignals };
std::string ToString(FreezerKind kind);

// What cgroup.events (v2) or freezer.state (v1) says.
bool IsFrozenText(FreezerKind kind, const std::string& text);

// The freezer of one node's tasks. Thread-safe.
class Freezer {
 public:
  // Finds the best way that works here, by trying it. `node` names the folder that all tasks' cgroups are in.
  static Freezer Detect(const std::string& node);
  // One that makes no cgroups: for tasks that live in those of a cluster manager.
  static Freezer WithSignals() { return {FreezerKind::kSignals, ""}; }

  FreezerKind kind() const { return kind_; }
  // Makes the task's cgroup; returns its folder, empty without cgroups.
  absl::StatusOr<std::string> MakeCgroup(const std::string& task) const;
  // The folder that MakeCgroup made. Empty without cgroups.
  std::string CgroupPath(const std::string& task) const;
  // That of the task's shim, made and removed with the task's. The shim is not to be frozen with its task,
  // and not to be killed with everything that a service manager takes for the agent's. Empty with v1, where
  // service managers have a hierarchy of their own, and without cgroups.
  std::string ShimCgroupPath(const std::string& task) const;
  // The cgroup by which a CRIU holds the task (CriuDump::hold): with v2 the folder that MakeCgroup made, else
  // empty. What is frozen with v1 cannot be ended.
  std::string HoldCgroup(const std::string& task) const;
  // OK if it is gone already or there are no cgroups.
  absl::Status RemoveCgroup(const std::string& task) const;

  // Returns when every process is seen frozen; on failure they run again.
  absl::Status Freeze(const std::string& task, pid_t init, Duration timeout) const;
  absl::Status Thaw(const std::string& task, pid_t init, Duration timeout) const;
  bool IsFrozen(const std::string& task, pid_t init) const;
  // SIGKILL to whatever is left in the task's cgroup, and below `init` if it is not 0.
  void KillAll(const std::string& task, pid_t init) const;
  // No process is in the task's cgroup. True without cgroups.
  bool IsEmpty(const std::string& task) const;

 private:
  Freezer(FreezerKind kind, std::string root) : kind_(kind), root_(std::move(root)) {}
  absl::Status Order(const std::string& task, pid_t init, bool freeze) const;

  FreezerKind kind_;
  std::string root_;  // ".../siding/<node>"
};

}  // namespace siding
