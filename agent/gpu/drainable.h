// Whether a task can be taken off its GPUs and put back, as far as it can be seen from outside, before the
// first of its processes is locked.
//
// Processes that share memory of GPUs are the dangerous case. The driver's Checkpoint of them succeeds, and
// its Restore is refused for ever: the job is lost. So what is not known to be safe is not touched.
//
// What is known to be safe was measured on driver 580.159 with PyTorch 2.11 (docs/user/gpu.md, "Several
// processes that compute together"). What cannot be seen from outside at all is memory that a program shares
// by exporting handles of the driver's virtual memory management itself, with none of these libraries.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace siding {

// One process that has the driver's library mapped, as /proc shows it.
struct GpuProgram {
  pid_t pid = 0;
  bool is_client = false;  // the driver knows it: it does not only inherit descriptors
  bool nccl =
      false;  // a library is mapped that is or may contain NCCL; PyTorch has it whether it uses it or not
  bool nvshmem = false;
  bool ucx = false;                                // UCX's transport for GPU memory
  bool legacy_ipc = false;                         // a segment of cuIpcGetMemHandle is mapped
  bool managed = false;                            // cudaMallocManaged
  std::map<std::string, std::string> environment;  // as it was started with
};

// What /proc/PID/maps says of it.
GpuProgram ReadGpuProgramMaps(const std::string& maps);

// The variables of /proc/PID/environ.
std::map<std::string, std::string> ReadEnvironment(const std::string& environ);

// Why the state of a task cannot be taken off its GPUs without losing it; empty: nothing is known against it.
// `nodes`: tasks of its job; `gpus`: of this task.
std::string WhyNotDrainable(const std::vector<GpuProgram>& programs, int nodes, int gpus);

// The same for the tree of a task, read from /proc. `is_client` is asked for each process that has the
// driver's library, if there are several; it says true if it does not know.
std::string WhyNotDrainable(const std::vector<pid_t>& tree, int nodes, int gpus,
                            const std::function<bool(pid_t)>& is_client);

}  // namespace siding
