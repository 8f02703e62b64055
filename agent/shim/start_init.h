// The step from a shim to a task's init: new namespaces, then the user's identity, then exec.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace siding {

// Which signals the init passes on to the command.
enum class PassesOn {
  kAll,
  kQueued,  // those of sigqueue(3); senders of others send them to the command as well
};

// What a command is started with.
struct InitPlan {
  std::string init_path;
  std::vector<std::string> command;      // not empty
  std::vector<std::string> environment;  // "NAME=value"
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
  std::string workdir;  // empty: that of the shim
  mode_t umask = 022;
  std::vector<std::pair<int, rlimit>> limits;  // others are the shim's
  std::vector<std::string> cgroups;            // their folders
  bool end_oom_protection = false;             // see fence.h
  int first_process = 0;                       // the command's number (names.h); 0: the kernel's choice
  // A namespace, the caller's descriptor: of a task that has terminals and shared memory of its own, too. -1:
  // the shim's.
  int network = -1;
  PassesOn passes_on = PassesOn::kAll;
  // The kernel says ENOSYS to io_uring, as in containers: programs have another way then, and what has none
  // open can be checkpointed. Only root can ask for that without taking set-user-id programs from the job, so
  // it is left out for others.
  bool refuse_io_uring = false;
  // Descriptors for 0, 1 and 2, the caller's. -1 in the first place: stdin is /dev/null, and `output` is
  // appended to.
  std::array<int, 3> stdio = {-1, -1, -1};
  std::string output;
  // Called when the init exists and has done nothing yet. An error, or the caller's death meanwhile, is its
  // end.
  std::function<absl::Status(pid_t init)> before_it_runs = [](pid_t) { return absl::OkStatus(); };
};

// Starts the command below siding-init, which becomes a child of this process; returns the init's pid. The
// error's message is meant for the job's owner.
absl::StatusOr<pid_t> StartInit(InitPlan plan);

}  // namespace siding
