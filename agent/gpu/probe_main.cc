// siding-gpu-probe CUDA MIB: fills so much memory of the first visible GPU, writes "ready", and ends when its
// input does. What the agent measures with before there is a job to measure.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "agent/gpu/cuda_api.h"
#include "agent/gpu/find_function.h"

namespace siding::gpu {
namespace {

// What was being done when it failed; nullptr: all done.
const char* Fill(const char* path, size_t bytes) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
  cuda::Init init = nullptr;
  cuda::DeviceGet get_device = nullptr;
  cuda::PrimaryContext get_context = nullptr;
  cuda::SetCurrent set_current = nullptr;
  cuda::MemAlloc allocate = nullptr;
  cuda::MemsetD8 fill = nullptr;
  cuda::Synchronize synchronize = nullptr;
  if (!Find(library, "cuInit", init) || !Find(library, "cuDeviceGet", get_device) ||
      !Find(library, "cuDevicePrimaryCtxRetain", get_context) ||
      !Find(library, "cuCtxSetCurrent", set_current) || !Find(library, "cuMemAlloc_v2", allocate) ||
      !Find(library, "cuMemsetD8_v2", fill) || !Find(library, "cuCtxSynchronize", synchronize))
    return "the library lacks a function";
  int device = 0;
  cuda::Context context = nullptr;
  cuda::DevicePointer memory = 0;
  if (init(0) != cuda::kSuccess) return "cuInit";
  if (get_device(&device, 0) != cuda::kSuccess) return "cuDeviceGet";
  if (get_context(&context, device) != cuda::kSuccess) return "cuDevicePrimaryCtxRetain";
  if (set_current(context) != cuda::kSuccess) return "cuCtxSetCurrent";
  if (allocate(&memory, bytes) != cuda::kSuccess) return "cuMemAlloc";
  if (fill(memory, 0x5d, bytes) != cuda::kSuccess) return "cuMemsetD8";
  if (synchronize() != cuda::kSuccess) return "cuCtxSynchronize";
  return nullptr;
}

}  // namespace
}  // namespace siding::gpu

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "siding-gpu-probe: is started by siding-agent, with the driver's library and MiB\n");
    return 2;
  }
  const char* const failed = siding::gpu::Fill(argv[1], std::strtoull(argv[2], nullptr, 10) << 20);
  // The answer is a line, good or bad.
  std::printf("%s\n", failed == nullptr ? "ready" : failed);
  std::fflush(stdout);
  char byte;
  while (failed == nullptr && read(0, &byte, 1) > 0) {
  }
  // Without the driver's own tidying up, which could wait for what is just being drained.
  _exit(failed == nullptr ? 0 : 1);
}
