// What the GPU driver can do with another process's state on the GPUs. All of it takes one process at a time;
// drain.h does it to all of a task's.
//
// A process is running; Lock makes its calls to the driver wait, after work already submitted is done;
// Checkpoint brings what it has on GPUs into its own host memory and lets go of the GPUs; Restore and Unlock
// are the way back. Frozen or dumped may only be what is checkpointed.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/units.h"

namespace siding {

enum class GpuState { kUnused, kRunning, kLocked, kCheckpointed, kFailed };
std::string ToString(GpuState state);

// Where what was on the GPU `before` is to go, by UUID in NVML's form ("GPU-8c1e...").
struct GpuMove {
  std::string before;
  std::string after;
};

struct GpuProcess {
  pid_t pid = 0;
  std::optional<Bytes> used;  // of the GPU's memory, if the driver says so
};

// One GPU, as it is now.
struct GpuDevice {
  std::string uuid;  // "GPU-8c1e..."
  std::string name;  // the chip: a state taken off a GPU fits another of the same name
  Bytes total;
  Bytes used;           // by programs
  Bytes free;           // the rest, but for what the driver keeps for itself
  int utilization = 0;  // per cent of the last moments in which it computed
  bool mig = false;     // cut into parts, from which the driver takes nothing off
  int minor = -1;       // N of /dev/nvidiaN; -1: not known
  std::vector<GpuProcess> processes;
};

// Thread-safe; calls for different processes run at the same time. Process ids are those of the caller's
// namespace. Errors:
//
//   kUnimplemented       the driver cannot do this to this process (managed memory, MPS, ...)
//
//   kFailedPrecondition  the process is in another state
//
//   kDeadlineExceeded    not done in time. Of a Lock the driver says so itself and the process runs on. A
//   call
//                        that hangs is given up with its helper process, and so are all others under way
//                        then: ask for the State
//
//   kUnavailable         no driver here, or the helper ended during the call: ask for the State
//
//   kResourceExhausted   the GPU has not memory enough
class GpuDriver {
 public:
  virtual ~GpuDriver() = default;
  // kUnused if the process has nothing to do with GPUs.
  virtual absl::StatusOr<GpuState> State(pid_t pid) = 0;
  virtual absl::Status Lock(pid_t pid, Duration timeout) = 0;
  virtual absl::Status Checkpoint(pid_t pid, Duration timeout) = 0;
  // `moves` is empty (back to where it was) or names every GPU that the process used.
  virtual absl::Status Restore(pid_t pid, const std::vector<GpuMove>& moves, Duration timeout) = 0;
  virtual absl::Status Unlock(pid_t pid, Duration timeout) = 0;
  // In the driver's order. kUnavailable if there is no driver to ask.
  virtual absl::StatusOr<std::vector<GpuDevice>> Devices() = 0;
};

// The driver's libraries, by name or path.
struct GpuLibraries {
  std::string cuda = "libcuda.so.1";
  std::string nvml = "libnvidia-ml.so.1";
};

// The real one: calls go through the helper program, which loads the libraries. A helper is started when one
// is needed; one that hangs or ends is replaced.
std::unique_ptr<GpuDriver> NewGpuDriver(const std::string& helper, GpuLibraries libraries = {});

}  // namespace siding
