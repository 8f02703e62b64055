// What siding-slurm-task is, read from /proc by the shim, its child.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/launch/shim.pb.h"
#include "agent/launch/start_init.h"
#include "common/files.h"
#include "spank/step_wire.h"

namespace siding {

// Command, environment, folder, umask, groups and limits of the process `task`, as the user of the request.
absl::StatusOr<InitPlan> ReadSlurmTask(pid_t task, const agent::ShimRequest& request);

// Strings that end in zeros, as in /proc/PID/cmdline; the first `skipped` are left out.
std::vector<std::string> SplitAtZeros(const std::string& text, int skipped);

// What tells a command from others; a batch script's own path, another on each node, is left out.
std::string CommandChecksum(std::vector<std::string> command);

// The numbers of the line "Groups:" of /proc/PID/status.
std::vector<gid_t> GroupsOf(const std::string& status);

// One line of /proc/PID/cgroup. The folder is relative to where cgroups are mounted: "freezer/slurm/job_1".
struct CgroupFolder {
  std::string controllers;  // empty: version 2
  std::string path;
};
std::vector<CgroupFolder> ParseCgroups(const std::string& text);

// Moves this process into every cgroup of that one. Slurm puts its tasks into cgroups after they have been
// forked.
absl::Status JoinCgroupsOf(pid_t task);

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
