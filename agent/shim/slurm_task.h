// What siding-slurm-task is, read from /proc by the shim, its child.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/shim/start_init.h"
#include "agent/task/shim.pb.h"
#include "common/files.h"
#include "spank/step_wire.h"

namespace siding {

// siding-slurm-task, held. It is its user's, who can end it at any moment: then the shim gets another parent,
// root's, and the number may become another process's. Neither is ever looked at in its place.
class SlurmTask {
 public:
  // This process's parent, which made the socket pair that `socket` is of. kCancelled if it has ended.
  static absl::StatusOr<SlurmTask> Parent(int socket);
  static absl::StatusOr<SlurmTask> Hold(pid_t pid);

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  // readable when it has ended
  // kCancelled if it has ended: what was read by its number before may be somebody else's.
  absl::Status Lives() const;
  // /proc/PID/`name` of it. kCancelled if it has ended.
  absl::StatusOr<std::string> Read(const char* name) const;

 private:
  SlurmTask(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  pid_t pid_;
  UniqueFd pidfd_;
};

// Its command, environment, folder, umask, groups and limits. kPermissionDenied if it does not run as the
// user of the request and nobody else.
absl::StatusOr<InitPlan> ReadSlurmTask(const SlurmTask& task, const agent::ShimRequest& request);

// What a task of a step that has a network of its own finds in its environment, as a rank of siding's own
// jobs does: NAME=value.
void SetRankOfStep(const agent::ShimRequest& request, std::vector<std::string>& environment);

// Strings that end in zeros, as in /proc/PID/cmdline; the first `skipped` are left out.
std::vector<std::string> SplitAtZeros(const std::string& text, int skipped);

// What tells a command from others; a batch script's own path, another on each node, is left out.
std::string CommandChecksum(std::vector<std::string> command);

// The numbers of the line "Groups:" of /proc/PID/status.
std::vector<gid_t> GroupsOf(const std::string& status);
// Whether all that the line "Uid:" of it names (real, effective, saved, of the file system) are this one.
bool IsOfUser(const std::string& status, uid_t uid);

// One line of /proc/PID/cgroup. The folder is relative to where cgroups are mounted: "freezer/slurm/job_1".
struct CgroupFolder {
  std::string controllers;  // empty: version 2
  std::string path;
};
std::vector<CgroupFolder> ParseCgroups(const std::string& text);

// Moves this process into every cgroup of that one. Slurm puts its tasks into cgroups after they have been
// forked.
absl::Status JoinCgroupsOf(const SlurmTask& task);

// What siding-slurm-task hands over.
struct SlurmHandover {
  spank::StepHandover said;
  std::array<UniqueFd, 3> stdio;  // its descriptors 0, 1 and 2
};
absl::StatusOr<SlurmHandover> ReceiveHandover(int socket);

// Slurm keeps a batch script in a folder of the node's own, while CRIU must find an open file where it was:
// the script is copied to a path that is the same on every node. Returns that path; empty if the command is
// no batch script.
absl::StatusOr<std::string> CopyBatchScript(const std::string& command, const agent::ShimRequest& request);
// Removes it.
void RemoveBatchScript(const agent::ShimRequest& request);

}  // namespace siding
