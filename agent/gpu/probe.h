// How fast this node takes state off its GPUs and puts it back, measured with a program of its own.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "agent/gpu/gpu_driver.h"
#include "agent/gpu/node_gpus.h"
#include "common/units.h"

namespace siding {

struct GpuProbe {
  Bytes bytes;  // that were on the GPU, the driver's own included
  Duration drain{0};
  Duration refill{0};
};

// Runs `program` (siding-gpu-probe) with so much memory on one free GPU, drains and refills it, and ends it.
// Takes seconds. One on which no process is goes first; `others_have_them`: only such, since a cluster
// manager gives GPUs to jobs that the agent does not know. kResourceExhausted: every GPU is in use.
absl::StatusOr<GpuProbe> ProbeGpu(NodeGpus& gpus, bool others_have_them, const std::string& program,
                                  const std::string& cuda_library, Bytes memory);

}  // namespace siding
