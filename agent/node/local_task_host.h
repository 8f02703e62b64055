// The agent without its network: runs this node's tasks, keeps what it must remember below `state_dir`, and
// finds everything again when it is constructed after its death.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/gpu/gpu_driver.h"
#include "agent/node/scrubber.h"
#include "agent/node/task_host.h"
#include "agent/os/fence.h"
#include "agent/pods/container_runtime.h"
#include "common/clock.h"
#include "siding/v1/types.pb.h"
#include "store/secret_key.h"

namespace siding {

// Which checkpoints are rehearsed (agent/checkpoint/rehearsal.h), of those after which the job continues: the
// first of a task that has not been restored, or each.
enum class Rehearsals { kNever, kFirst, kAlways };

struct TaskHostOptions {
  std::string node;
  std::string state_dir;    // made if missing; one agent each
  std::string local_dir;    // local tier; empty: `store` in the state_dir
  std::string shared_dir;   // shared tier; empty: this node has none
  bool all_memory = false;  // of `capacity`: the machine's, and jobs get what a local tier in memory leaves
  v1::Resources capacity;   // of GPUs, where they are looked for, at most so many as are found; -1: all
  std::string criu_path;    // empty: searched, see agent/criu/criu.h
  std::string shim_path;    // of siding-shim and siding-init; empty: beside this program
  std::string init_path;
  std::string pods_socket;  // where siding-runc says that it makes a container; empty: no pods here
  std::string runc;         // the program; empty: that in PATH
  RuncPatience runc_patience;
  bool cluster_manager = false;               // starts jobs here, too, and gives them GPUs
  std::vector<std::string> gpu_uuids;         // of the GPUs that are this agent's; empty: all
  std::optional<GpuLibraries> gpu_libraries;  // of the GPU driver; not set: GPUs are not looked for
  bool huge_pages = false;                    // see agent/gpu/huge_pages.h
  ScrubOptions scrub;
  Rehearsals rehearsals = Rehearsals::kNever;
  Fence::Wanted fence;                         // of tasks that this agent starts
  int64_t task_processes = 0;                  // and threads, of one; 0: by its slots
  std::shared_ptr<const store::KeyRing> keys;  // for encrypted checkpoints; null: there are none
  // Of ranks that have a network of their own (agent/network): at which address other nodes reach it, and UDP
  // port. Empty: that from which this node reaches the first of these controllers, or else the loopback's.
  std::string gang_address;
  std::vector<std::string> gang_towards;  // "HOST:PORT"
  int gang_port = 4789;
  std::string plain_dir;        // see StoreOptions; empty: `plain` in the state_dir
  std::string certificate;      // the agent's own, PEM; empty: it has none
  std::string gpu_helper_path;  // of siding-gpu-helper and siding-gpu-probe, as above
  std::string gpu_probe_path;
};

// `sink` and `clock` must outlive the host. The sink is called with locks held: it must not call the host.
// Destroying the host undoes dumps that are not committed and leaves all tasks as they are.
// An error if it cannot be read which tasks the node has: a host that did not know them would say that they
// are gone. Without a usable store or criu it says so in Describe().criu_problem, and every operation that
// needs it fails with the reason.
absl::StatusOr<std::unique_ptr<TaskHost>> NewTaskHost(TaskHostOptions options, ReportSink& sink,
                                                      const Clock& clock);

}  // namespace siding
