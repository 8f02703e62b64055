// What a task of a step has written is on its way for a while: through a pipe to slurmstepd, from there to
// srun, and only then into the user's file. For siding-slurm-task.
#pragma once

namespace siding::spank {

// Whether something waits to be read in the pipe behind one of the two. False for anything but a pipe.
bool IsUnread(int output, int error_output);

}  // namespace siding::spank
