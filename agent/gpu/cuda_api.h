// The part of the CUDA driver's interface that siding uses: no toolkit is needed to build. cuda_api_check.cc
// compares every line with cuda.h where there is one. Checkpoint functions: driver 570 and newer, remapping
// of GPUs 580.
#pragma once

#include <cstddef>
#include <cstdint>

namespace siding::cuda {

enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kIllegalState = 401,
  kNotReady = 600,
  kNotPermitted = 800,
  kNotSupported = 801,
};

enum ProcessState : int { kRunning = 0, kLocked = 1, kCheckpointed = 2, kFailed = 3 };

struct Uuid {
  char bytes[16];
};
struct GpuPair {
  Uuid before;
  Uuid after;
};

struct LockArgs {
  unsigned timeout_ms;  // 0: none
  unsigned reserved0;
  uint64_t reserved1[7];
};
struct CheckpointArgs {
  uint64_t reserved[8];
};
struct RestoreArgs {
  GpuPair* pairs;
  unsigned pair_count;
  char reserved[52 - sizeof(GpuPair*)];  // NOLINT(bugprone-sizeof-expression): of the pointer
  uint64_t reserved1;
};
struct UnlockArgs {
  uint64_t reserved[8];
};

// By the names that they have in libcuda.so.1.
using Init = Result (*)(unsigned flags);                     // cuInit
using GetErrorName = Result (*)(Result, const char** name);  // cuGetErrorName
using GetState = Result (*)(int pid, ProcessState*);         // cuCheckpointProcessGetState
using Lock = Result (*)(int pid, LockArgs*);                 // cuCheckpointProcessLock
using Checkpoint = Result (*)(int pid, CheckpointArgs*);     // cuCheckpointProcessCheckpoint
using Restore = Result (*)(int pid, RestoreArgs*);           // cuCheckpointProcessRestore
using Unlock = Result (*)(int pid, UnlockArgs*);             // cuCheckpointProcessUnlock

// For a program with state of its own on a GPU.
using DevicePointer = unsigned long long;
using Context = struct CUctx_st*;
using DeviceGet = Result (*)(int* device, int ordinal);                         // cuDeviceGet
using PrimaryContext = Result (*)(Context*, int device);                        // cuDevicePrimaryCtxRetain
using SetCurrent = Result (*)(Context);                                         // cuCtxSetCurrent
using MemAlloc = Result (*)(DevicePointer*, size_t bytes);                      // cuMemAlloc_v2
using MemsetD8 = Result (*)(DevicePointer, unsigned char value, size_t bytes);  // cuMemsetD8_v2
using Synchronize = Result (*)();                                               // cuCtxSynchronize

}  // namespace siding::cuda
