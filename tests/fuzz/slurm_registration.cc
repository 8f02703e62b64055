// What a task that Slurm starts says to the agent.
#include "agent/gpu/allocated_gpus.h"
#include "agent/slurm/registration.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace siding;
  const auto registered = ParseRegistration(fuzz::TextOf(data, size));
  if (!registered.ok()) return 0;
  StartOf(registered->task, std::nullopt).status().IgnoreError();
  StartOf(registered->task, FoundCheckpoint{CheckpointId("slurm-1.1"), v1::LOCAL}).status().IgnoreError();
  LastWhole({{CheckpointId("slurm-1.1"), 0}, {CheckpointId("slurm-1.2"), 65536}}, registered->task);
  FindAllocatedGpus(registered->gpus, {"GPU-8c1e2f30-9d54-4e5b-8a7c-0123456789ab"}, {})
      .status()
      .IgnoreError();
  return 0;
}
