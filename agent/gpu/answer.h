// What the GPU helper has answered, as values. It may have answered anything: the driver in it can write
// where it does not belong before it crashes. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "agent/gpu/gpu_driver.h"
#include "agent/gpu/protocol.h"

namespace siding::gpu {

// What the driver calls the error.
std::string TextOf(const Answer& answer);
// Whether the driver did `what` with the process.
absl::Status StatusOf(const Answer& answer, const char* what, pid_t pid);
// The device, if there is one of the number that was asked for.
GpuDevice DeviceOf(const Answer& answer);

}  // namespace siding::gpu
