// What NCCL must be told so that the processes of one node that use it can be taken off their GPUs: they
// exchange data over sockets, and share no GPU memory. Measured with the driver's own calls, on two GPUs with
// PyTorch: docs/user/gpu.md. All other combinations that were tried lose the job, or have been seen to work
// only once.
#pragma once

namespace siding {

struct CollectiveSetting {
  const char* name;
  const char* value;
};

inline constexpr CollectiveSetting kDrainableCollectives[] = {
    {"NCCL_NVLS_ENABLE", "0"},   // multicast over NVLink
    {"NCCL_P2P_DISABLE", "1"},   // one GPU's memory mapped by another's process
    {"NCCL_SHM_DISABLE", "1"},   // host memory that the driver shares
    {"NCCL_MNNVL_ENABLE", "0"},  // NVLink between nodes
    {"NCCL_NET", "Socket"},      // not InfiniBand, whose adapters are given the GPU's memory
};

}  // namespace siding
