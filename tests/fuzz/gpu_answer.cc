// What the process with the GPU driver in it answers.
#include <cstring>

#include "agent/gpu/answer.h"
#include "agent/gpu/uuid.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace siding;
  gpu::Answer answer{};
  std::memcpy(&answer, data, std::min(size, sizeof answer));
  const GpuDevice device = gpu::DeviceOf(answer);
  gpu::StatusOf(answer, "lock", 1).IgnoreError();
  if (const auto uuid = ParseGpuUuid(device.uuid); uuid.ok())
    fuzz::Expect(ParseGpuUuid(FormatGpuUuid(*uuid)).ok(), "a UUID that was written is read");
  return 0;
}
