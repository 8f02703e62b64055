// What the agent and its GPU helper say to each other over a SOCK_SEQPACKET socket: one fixed message each
// way. Both come from the same build, so there is no version.
#pragma once

#include <cstdint>

#include "agent/gpu/cuda_api.h"

namespace siding::gpu {

inline constexpr int kSocket = 3;  // the helper's end
inline constexpr int kMostPairs = 16;

enum class Call : uint32_t { kState, kLock, kCheckpoint, kRestore, kUnlock };

struct Question {
  uint64_t id;  // comes back with the answer; answers may come in another order
  Call call;
  int32_t pid;
  uint32_t timeout_ms;  // kLock
  uint32_t pairs;
  cuda::GpuPair pair[kMostPairs];
};

struct Answer {
  uint64_t id;
  int32_t result;  // cuda::Result; -1: there is no driver that could be asked
  int32_t state;   // kState: cuda::ProcessState
  char text[200];  // what the driver calls the error, or why there is none
};

}  // namespace siding::gpu
