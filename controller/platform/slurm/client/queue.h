// What Slurm's words mean, whichever way it was asked. Pure.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "controller/platform/slurm/client/values.h"

namespace siding::slurm {

// From the word that squeue shows.
JobPhase PhaseOf(const std::string& state);

// "10:00", "1:02:03", "365-00:00:00", "1-2"; kInvalidArgument if it is nothing of the kind.
absl::StatusOr<std::optional<Duration>> ParseLimit(const std::string& text);

// From sinfo's word, in small letters, without what stands behind it.
bool IsUp(const std::string& node_state);

// How many GPUs a list of generic resources has: "gpu:2", "gres:gpu:h200:4,gres:nvme", "gres/gpu=2",
// "gpu:h200:4(S:0-1)", "N/A".
int GpusOf(const std::string& gres);

// What a job was asked for that Slurm tells in other measures than ours; 0: nothing.
struct Requested {
  int gpus_of_job = 0;
  Bytes memory_per_cpu;
};
// Sets what follows from the other fields: whether it is held, memory and GPUs per node, no start for one
// that waits, no reason where Slurm says "None".
void Complete(QueueJob& job, const Requested& requested);

// The status for what Slurm said in plain words, such as "Invalid job id specified".
absl::Status StatusOfMessage(const std::string& message);

}  // namespace siding::slurm
