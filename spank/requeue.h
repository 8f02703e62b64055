// Asking Slurm to put the job back into its queue, script and all. For siding-slurm-task.
#pragma once

#include <signal.h>

namespace siding::spank {

enum class Requeue {
  kDone,     // Slurm is about to end the job's processes, this one among them
  kRefused,  // for good: the job has no script, or was submitted with --no-requeue
  kFailed,   // may work later: Slurm does not answer
};

// Runs scontrol as the job's user, who may do that, with the signal mask `mask`. `hold`: the job is to wait
// until it is released.
Requeue AskForRequeue(const char* job, bool hold, const sigset_t& mask);

// What scontrol's end means; `complaint` is what it wrote to its error output.
Requeue JudgeRequeue(bool succeeded, const char* complaint);

}  // namespace siding::spank
