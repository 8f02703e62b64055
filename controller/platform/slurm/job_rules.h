// What follows from what Slurm says of a job, whichever way it was asked. Pure.
#pragma once

#include "controller/platform/slurm/values.h"

namespace siding {

// What was asked for, as far as it is known: none of it is 0.
struct SlurmAsked {
  int gpus_of_job = 0;
  Bytes memory_per_cpu;
};
// Sets what is not told but follows, in a job whose other fields are set: whether it is held, its memory and
// GPUs per node where they were asked for by CPU or for the whole job, and no start for one that waits.
void Complete(SlurmJob& job, const SlurmAsked& asked);

}  // namespace siding
