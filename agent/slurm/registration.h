// What Slurm's plugin says when a task starts, and what the agent makes of it. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/gpu/allocated_gpus.h"
#include "siding/v1/agent.pb.h"
#include "spank/messages.h"
#include "store/store.h"

namespace siding {

// A task that starts, and what is known of its GPUs.
struct Registered {
  spank::Registration task;
  GpuAllocation gpus;
};
// kInvalidArgument names the line and what was expected; kUnimplemented: of a later version.
absl::StatusOr<Registered> ParseRegistration(const std::string& text);

// Which rank of the Slurm job the task is: 0 is the batch script; the tasks of srun's step 0 are 65536, 65537
// and so on, those of step 1 begin at 131072. The same after a requeue, so that an image finds its task.
absl::StatusOr<int> RankOf(const spank::Registration& registration);

// Checkpoints of Slurm's job 42 are called "slurm-42.1", "slurm-42.2" and so on.
std::string CheckpointPrefix(int64_t job);

// The last checkpoint of the job, by number, that has an image of every task of the step. Empty: there is
// none.
std::optional<CheckpointId> LastWhole(const std::vector<ImageKey>& images,
                                      const spank::Registration& registration);

struct FoundCheckpoint {
  CheckpointId id;
  v1::Tier tier = v1::TIER_UNSPECIFIED;
};
// The later of what the two tiers have. A node's own tier holds the images of its own tasks only, so it is
// asked for one task.
std::optional<FoundCheckpoint> ChooseCheckpoint(const std::vector<ImageKey>& local,
                                                const std::vector<ImageKey>& shared,
                                                const spank::Registration& registration);

// The launch or, from a checkpoint, the restore that the task begins with.
absl::StatusOr<v1::ToAgent> StartOf(const spank::Registration& registration,
                                    const std::optional<FoundCheckpoint>& checkpoint);

// The agent's answers, as spank/messages.h reads them.
std::string AcceptedText(const std::string& folder);
std::string RefusedText(const absl::Status& why);
// The orders are there, or why not: OK is "go".
std::string OrdersText(const absl::Status& status);

}  // namespace siding
