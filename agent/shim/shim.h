// The parts of siding-shim; see docs/design/README.md, "How a task lives on a node". One thread, one task.
#pragma once

#include <sys/types.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/os/fence.h"
#include "agent/os/names.h"
#include "agent/task/shim.pb.h"
#include "common/files.h"

namespace siding {

// In the task's folder: the networks of all ranks have been joined.
inline constexpr char kAllJoined[] = "all-joined";

// A task that the shim has brought to life; its init is a child of this process.
struct ShimTask {
  pid_t init = 0;
  UniqueFd network;  // of its own, if it has one
  std::vector<std::string> notes;
};

// Starts the request's command below siding-init. `folder` is the task's. The error's message is meant for
// the job's owner.
absl::StatusOr<ShimTask> LaunchTask(const agent::ShimRequest& request, const std::string& folder);

// Puts the files of the job back to what they were at the checkpoint, then restores the image. `folder` is
// the task's, and gets criu's log. `stdio` takes the places of the pipes that the task had for its
// descriptors 0, 1 and 2; -1: there were none. `stopped`: nobody waits for the task any more.
absl::StatusOr<ShimTask> RestoreTask(
    const agent::ShimRequest& request, const std::string& folder,
    const std::array<int, 3>& stdio = {-1, -1, -1},
    const std::function<bool()>& stopped = [] { return false; });

// A network for the task, as the request says; -1, which is not valid: it has that of the node.
absl::StatusOr<UniqueFd> MakeTaskNetwork(const agent::ShimRequest& request);

// NAME=value, added to `environment` in place of another.
void SetVariable(std::vector<std::string>& environment, const std::string& name, const std::string& value);
// What a program finds of its network; nothing if it has none.
void SetGang(const agent::ShimRequest& request, std::vector<std::string>& environment);

// io_uring is refused to jobs that may be checkpointed, for CRIU cannot dump it.
bool RefusesIoUring(const siding::v1::JobSpec& spec);

// What the job's GPU collectives need to be drainable: NAME=value, added to `environment` in place of others.
void SetGpuCollectives(const siding::v1::JobSpec& spec, std::vector<std::string>& environment);

// What the task's program has by name.
ProgramNames NamesOf(const agent::ShimRequest& request);

// The task's folder for temporary files (tmpdir.h), and makes it.
std::string TaskTmpdir(const agent::ShimRequest& request);
absl::Status MakeTaskTmpdir(const agent::ShimRequest& request);

// The folders of all cgroups that the task is to be in, and those of them that are its fence.
std::vector<std::string> CgroupsOf(const agent::ShimRequest& request);
TaskFence FenceOf(const agent::ShimRequest& request);

// The output path of the spec with %j (job) and %r (rank) filled in.
std::string OutputPath(const std::string& pattern, int64_t job, int rank);

}  // namespace siding
