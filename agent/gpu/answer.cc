#include "agent/gpu/answer.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "agent/gpu/cuda_api.h"

namespace siding::gpu {
namespace {

// Of an array that should end in a zero.
template <size_t kSize>
std::string TextIn(const char (&text)[kSize]) {
  return std::string(text, strnlen(text, kSize));
}

Bytes BytesOf(uint64_t value) {
  return Bytes{static_cast<int64_t>(std::min<uint64_t>(value, std::numeric_limits<int64_t>::max()))};
}

}  // namespace

std::string TextOf(const Answer& answer) { return TextIn(answer.text); }

absl::Status StatusOf(const Answer& answer, const char* what, pid_t pid) {
  const std::string text = absl::StrCat("GPU driver, ", what, " of process ", pid, ": ", TextOf(answer));
  switch (answer.result) {
    case cuda::kSuccess:
      return absl::OkStatus();
    case -1:
      return absl::UnavailableError(TextOf(answer));
    case cuda::kInvalidValue:
      return absl::InvalidArgumentError(text);
    case cuda::kOutOfMemory:
      return absl::ResourceExhaustedError(text);
    case cuda::kIllegalState:
      return absl::FailedPreconditionError(text);
    case cuda::kNotReady:
      return absl::DeadlineExceededError(text);
    case cuda::kNotPermitted:
      return absl::PermissionDeniedError(text);
    case cuda::kNotSupported:
      return absl::UnimplementedError(text);
    default:
      return absl::InternalError(text);
  }
}

GpuDevice DeviceOf(const Answer& answer) {
  const Device& said = answer.device;
  GpuDevice device;
  device.uuid = TextIn(said.uuid);
  device.name = TextIn(said.name);
  device.total = BytesOf(said.total);
  device.used = BytesOf(said.used);
  device.free = BytesOf(said.free);
  device.utilization = static_cast<int>(std::min<uint32_t>(said.utilization, 100));
  device.mig = said.mig != 0;
  device.minor = said.minor;
  const size_t count = std::min<size_t>(said.processes, kMostProcesses);
  for (const Process* process = said.process; process < said.process + count; ++process) {
    GpuProcess& one = device.processes.emplace_back();
    one.pid = process->pid;
    if (process->used != ~uint64_t{0}) one.used = BytesOf(process->used);
  }
  return device;
}

}  // namespace siding::gpu
