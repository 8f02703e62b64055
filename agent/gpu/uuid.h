// "GPU-8c1e2f30-...": how NVML and CUDA_VISIBLE_DEVICES name a GPU, and the sixteen bytes that the driver
// wants.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "agent/gpu/cuda_api.h"

namespace siding {

absl::StatusOr<cuda::Uuid> ParseGpuUuid(const std::string& text);
std::string FormatGpuUuid(const cuda::Uuid& uuid);

}  // namespace siding
