// A libcuda.so.1 without GPUs, for tests of the helper: a shared library with the driver's names. The state
// of a process is a file named by its pid in $FAKE_CUDA; a process without one does not use GPUs. A file
// "fault" there says what goes wrong: "CALL RESULT" with a number, or "hang" or "crash".
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "agent/gpu/cuda_api.h"

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
  return static_cast<Result>(std::stoi(what));
}

Result Change(const std::string& call, int pid, int from, int to) {
  if (const Result fault = Fault(call); fault != siding::cuda::kSuccess) return fault;
  const std::string file = Folder() + "/" + std::to_string(pid);
  int state = -1;
  if (!(std::ifstream(file) >> state)) return siding::cuda::kInvalidValue;
  if (state != from) return siding::cuda::kIllegalState;
  std::ofstream(file) << to;
  return siding::cuda::kSuccess;
}

}  // namespace

extern "C" {

Result cuInit(unsigned) { return Fault("init"); }

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
  if (!(std::ifstream(Folder() + "/" + std::to_string(pid)) >> value)) return siding::cuda::kInvalidValue;
  *state = static_cast<siding::cuda::ProcessState>(value);
  return siding::cuda::kSuccess;
}

Result cuCheckpointProcessLock(int pid, siding::cuda::LockArgs* args) {
  if (args->timeout_ms == 0) return siding::cuda::kInvalidValue;  // siding never waits without end
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
