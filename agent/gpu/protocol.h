// What the agent and its GPU helper say to each other over a SOCK_SEQPACKET socket: one fixed message each
// way. Both come from the same build, so there is no version.
#pragma once

#include <cstdint>

#include "agent/gpu/cuda_api.h"

namespace siding::gpu {

inline constexpr int kSocket = 3;  // the helper's end
inline constexpr int kMostPairs = 16;
inline constexpr int kMostProcesses = 32;  // of one GPU that are told

enum class Call : uint32_t { kState, kLock, kCheckpoint, kRestore, kUnlock, kDevice };

struct Question {
  uint64_t id;  // comes back with the answer; answers may come in another order
  Call call;
  int32_t pid;          // kDevice: the GPU's number, from 0
  uint32_t timeout_ms;  // kLock
  uint32_t pairs;
  cuda::GpuPair pair[kMostPairs];
};

struct Process {
  int32_t pid;
  uint64_t used;  // bytes; all ones: not known
};

struct Device {
  char uuid[48];
  char name[96];
  uint64_t total, used, free;  // bytes
  uint32_t utilization;        // per cent
  uint32_t mig;                // 1: it is cut into parts
  int32_t minor;               // N of /dev/nvidiaN; -1: not known
  uint32_t processes;
  Process process[kMostProcesses];
};

struct Answer {
  uint64_t id;
  int32_t result;  // cuda::Result; -1: there is no driver that could be asked
  int32_t state;   // kState: cuda::ProcessState; kDevice: how many there are
  char text[200];  // what the driver calls the error, or why there is none
  Device device;   // kDevice, if there is one of that number
};

}  // namespace siding::gpu
