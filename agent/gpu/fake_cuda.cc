// A libcuda.so.1 and libnvidia-ml.so.1 without GPUs, for tests: a shared library with the drivers' names.
//
// The state of a process is a number in a file named by its pid: in the folder that its environment calls
// $FAKE_GPU_STATES by its pid in its own namespace, which is the same after a restore; else in $FAKE_CUDA. A
// process without one does not use GPUs. In $FAKE_CUDA there may be the files
//   fault  what goes wrong: "CALL RESULT" with a number, or "hang" or "crash"; or "wait", until it is gone:
//          there is a file "waits" then
//   gpus   a line for each GPU: its UUID, MiB in all, MiB in use, and 1 if it is cut into parts
//   follows  the name of a process's file: the memory of all GPUs is its, and free while it is drained
//   peers  a number: so many processes compute together, and none of them can be locked but with all others
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "agent/gpu/cuda_api.h"
#include "agent/gpu/nvml_api.h"
#include "common/mutex.h"

namespace {

using siding::cuda::Result;

std::string Folder() {
  const char* const folder = std::getenv("FAKE_CUDA");
  return folder == nullptr ? "/nowhere" : folder;
}

Result Fault(const std::string& call) {
  std::ifstream in(Folder() + "/fault");
  std::string name, what;
  if (!(in >> name >> what) || name != call) return siding::cuda::kSuccess;
  if (what == "crash") _exit(1);
  while (what == "hang") pause();
  if (what == "wait") {
    std::ofstream(Folder() + "/waits").flush();
    while (access((Folder() + "/fault").c_str(), F_OK) == 0) usleep(1000);
    return siding::cuda::kSuccess;
  }
  return static_cast<Result>(std::stoi(what));
}

// The value of a variable in that process's environment.
std::string Variable(int pid, const std::string& name) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/environ");
  for (std::string entry; std::getline(in, entry, '\0');) {
    if (entry.compare(0, name.size() + 1, name + "=") == 0) return entry.substr(name.size() + 1);
  }
  return "";
}

// In its own namespace.
std::string PidOf(int pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);) {
    if (line.compare(0, 6, "NSpid:") == 0) return line.substr(line.find_last_of(" \t") + 1);
  }
  return "none";
}

std::string StateFile(int pid) {
  const std::string folder = Variable(pid, "FAKE_GPU_STATES");
  return folder.empty() ? Folder() + "/" + std::to_string(pid) : folder + "/" + PidOf(pid);
}

Result Change(const std::string& call, int pid, int from, int to) {
  if (const Result fault = Fault(call); fault != siding::cuda::kSuccess) return fault;
  const std::string file = StateFile(pid);
  int state = -1;
  if (!(std::ifstream(file) >> state)) return siding::cuda::kInvalidValue;
  if (state != from) return siding::cuda::kIllegalState;
  std::ofstream(file) << to;
  return siding::cuda::kSuccess;
}

struct Collective {
  siding::Mutex mutex;
  siding::CondVar changed;
  int asked ABSL_GUARDED_BY(mutex) = 0;
  int complete ABSL_GUARDED_BY(mutex) = 0;
};

// A process in the middle of a collective operation waits for its peers: it can only be locked while they are
// being locked as well.
Result AwaitPeers(unsigned timeout_ms) {
  static Collective all;
  int peers = 0;
  if (!(std::ifstream(Folder() + "/peers") >> peers)) return siding::cuda::kSuccess;
  siding::MutexLock lock(all.mutex);
  const int mine = all.complete;
  if (++all.asked == peers) {
    all.asked = 0;
    ++all.complete;
    all.changed.NotifyAll();
  }
  const bool together =
      all.changed.WaitFor(all.mutex, std::chrono::milliseconds(timeout_ms),
                          [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(all.mutex) { return all.complete > mine; });
  if (!together) --all.asked;
  return together ? siding::cuda::kSuccess : siding::cuda::kNotReady;
}

struct FakeGpu {
  std::string uuid;
  unsigned long long total = 0, used = 0;
  unsigned mig = 0;
};

std::vector<FakeGpu> Gpus() {
  std::vector<FakeGpu> gpus;
  std::ifstream in(Folder() + "/gpus");
  std::string process;
  int state = siding::cuda::kRunning;
  if (std::ifstream(Folder() + "/follows") >> process) std::ifstream(Folder() + "/" + process) >> state;
  for (FakeGpu gpu; in >> gpu.uuid >> gpu.total >> gpu.used >> gpu.mig;) {
    gpu.total <<= 20;
    gpu.used = state == siding::cuda::kCheckpointed ? 0 : gpu.used << 20;
    gpus.push_back(gpu);
  }
  return gpus;
}

// A handle is the GPU's number, from 1.
FakeGpu GpuOf(siding::nvml::Device handle) { return Gpus().at(reinterpret_cast<uintptr_t>(handle) - 1); }

}  // namespace

extern "C" {

using NvmlResult = siding::nvml::Result;
using siding::nvml::Device;

NvmlResult nvmlInit_v2() { return siding::nvml::kSuccess; }
NvmlResult nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(Gpus().size());
  return siding::nvml::kSuccess;
}
NvmlResult nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* handle) {
  *handle = reinterpret_cast<Device>(static_cast<uintptr_t>(index) + 1);
  return siding::nvml::kSuccess;
}
NvmlResult nvmlDeviceGetUUID(Device handle, char* text, unsigned size) {
  std::snprintf(text, size, "%s", GpuOf(handle).uuid.c_str());
  return siding::nvml::kSuccess;
}
NvmlResult nvmlDeviceGetName(Device, char* text, unsigned size) {
  std::snprintf(text, size, "Fake GPU");
  return siding::nvml::kSuccess;
}
NvmlResult nvmlDeviceGetMinorNumber(Device handle, unsigned* minor) {
  *minor = static_cast<unsigned>(reinterpret_cast<uintptr_t>(handle) - 1);
  return siding::nvml::kSuccess;
}
NvmlResult nvmlDeviceGetMemoryInfo_v2(Device handle, siding::nvml::Memory* memory) {
  const FakeGpu gpu = GpuOf(handle);
  memory->total = gpu.total;
  memory->free = gpu.total - gpu.used;
  memory->used = gpu.used;
  return siding::nvml::kSuccess;
}
NvmlResult nvmlDeviceGetMigMode(Device handle, unsigned* current, unsigned* pending) {
  *current = *pending = GpuOf(handle).mig;
  return siding::nvml::kSuccess;
}

Result cuInit(unsigned) { return Fault("init"); }

Result cuDeviceGet(int* device, int) {
  *device = 0;
  return Gpus().empty() ? siding::cuda::kInvalidValue : siding::cuda::kSuccess;
}
Result cuDevicePrimaryCtxRetain(siding::cuda::Context*, int) { return siding::cuda::kSuccess; }
Result cuCtxSetCurrent(siding::cuda::Context) { return siding::cuda::kSuccess; }
Result cuMemAlloc_v2(siding::cuda::DevicePointer*, size_t) {
  std::ofstream(StateFile(getpid())) << siding::cuda::kRunning;
  return Fault("alloc");
}
Result cuMemsetD8_v2(siding::cuda::DevicePointer, unsigned char, size_t) { return siding::cuda::kSuccess; }
Result cuCtxSynchronize() { return siding::cuda::kSuccess; }

Result cuGetErrorName(Result result, const char** name) {
  switch (result) {
    case siding::cuda::kNotSupported:
      *name = "CUDA_ERROR_NOT_SUPPORTED";
      break;
    case siding::cuda::kNotReady:
      *name = "CUDA_ERROR_NOT_READY";
      break;
    case siding::cuda::kIllegalState:
      *name = "CUDA_ERROR_ILLEGAL_STATE";
      break;
    default:
      *name = "CUDA_ERROR_UNKNOWN";
  }
  return siding::cuda::kSuccess;
}

Result cuCheckpointProcessGetState(int pid, siding::cuda::ProcessState* state) {
  if (const Result fault = Fault("state"); fault != siding::cuda::kSuccess) return fault;
  int value = -1;
  if (!(std::ifstream(StateFile(pid)) >> value)) return siding::cuda::kInvalidValue;
  *state = static_cast<siding::cuda::ProcessState>(value);
  return siding::cuda::kSuccess;
}

Result cuCheckpointProcessLock(int pid, siding::cuda::LockArgs* args) {
  if (args->timeout_ms == 0) return siding::cuda::kInvalidValue;  // siding never waits without end
  if (const Result alone = AwaitPeers(args->timeout_ms); alone != siding::cuda::kSuccess) return alone;
  return Change("lock", pid, siding::cuda::kRunning, siding::cuda::kLocked);
}
Result cuCheckpointProcessCheckpoint(int pid, siding::cuda::CheckpointArgs*) {
  return Change("checkpoint", pid, siding::cuda::kLocked, siding::cuda::kCheckpointed);
}
Result cuCheckpointProcessRestore(int pid, siding::cuda::RestoreArgs* args) {
  if (args->pair_count > 0) {
    std::ofstream out(Folder() + "/moves");
    for (unsigned i = 0; i < args->pair_count; ++i)
      out << static_cast<int>(args->pairs[i].before.bytes[15]) << " to "
          << static_cast<int>(args->pairs[i].after.bytes[15]) << "\n";
  }
  return Change("restore", pid, siding::cuda::kCheckpointed, siding::cuda::kLocked);
}
Result cuCheckpointProcessUnlock(int pid, siding::cuda::UnlockArgs*) {
  return Change("unlock", pid, siding::cuda::kLocked, siding::cuda::kRunning);
}
}
