// The shim of a task that Slurm has started. It is root's, a child of the process that Slurm takes for the
// task (siding-slurm-task, the user's), and stands between that and the task's init:
//
//     slurmstepd -> siding-slurm-task -> siding-shim -> siding-init -> the command
//
// So Slurm finds all of them below its own process: accounting, scancel and suspend work as ever. The command
// gets the arguments, environment, folder, limits, groups, cgroups and descriptors of siding-slurm-task.
#pragma once

#include "absl/status/status.h"

namespace siding {

// The descriptors are as spank/step_wire.h says. Returns when the task has ended. The error is
// meant for the log; both the task and the agent have been told.
absl::Status RunForSlurm();

}  // namespace siding
