#include "controller/platform/slurm/job_rules.h"

#include <algorithm>

namespace siding {

void Complete(SlurmJob& job, const SlurmAsked& asked) {
  const int nodes = std::max(job.node_count, 1);
  const auto spread = [nodes](int whole) { return (whole + nodes - 1) / nodes; };
  if (job.gpus_per_node == 0) job.gpus_per_node = spread(asked.gpus_of_job);
  if (job.memory_per_node == Bytes{0})
    job.memory_per_node = Bytes{asked.memory_per_cpu.value * spread(job.cpus)};
  // One that runs or is suspended may have a priority of 0 as well.
  const bool waits = job.state == SlurmJobState::kPending;
  job.held = waits && job.priority == 0;
  if (waits) job.started = Time();
}

}  // namespace siding
