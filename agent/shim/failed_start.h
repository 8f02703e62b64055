// What becomes of a task of Slurm's whose start failed. Pure.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "agent/task/task_record.pb.h"
#include "spank/step_wire.h"

namespace siding {

// `restarts`: how often Slurm has requeued the job. `record`: the agent's, null if it did not take the task.
// kNotStarted: there is no work to lose, the command starts from its beginning. kComeBack or kHold: there may
// be a checkpoint that could not be used this time.
spank::StepWord JudgeFailedStart(uint32_t restarts, const agent::TaskRecord* record);

// The same of one that has no other way to run: the agent has ended it as soon as it ran, or its peers wait
// in a network for it.
spank::StepWord JudgePutOff(uint32_t restarts, const agent::TaskRecord* record);

// For the job's owner, in one line.
std::string TellFailedStart(spank::StepWord word, const absl::Status& why);

}  // namespace siding
