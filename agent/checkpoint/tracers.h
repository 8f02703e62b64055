// Who traces a task's processes (ptrace): a CRIU that is at work on them, or a debugger of the job's. Only
// the former is ever ended.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "common/units.h"

namespace siding {

// The CRIU that traces a process of the tree and was started for this task, by this agent or an earlier one;
// 0: there is none. It is known by where it works: `work_folder` is its working folder from before it traces
// anything (CriuDump::work_folder), only root can enter that, and a task has one of its own. So neither a
// job's program that is called criu is taken for it, nor one that has got the number of a CRIU that has
// ended, nor root's debugger that was started there.
pid_t FindCriuAtWork(pid_t init, const std::string& work_folder);

// Waits until there is none any more, which an interrupted dump may leave behind; ends it when time runs out.
// Whoever else traces the processes is left alone.
absl::Status AwaitCriuGone(pid_t init, const std::string& work_folder, Duration timeout);

// "process 17 (prog) is being traced by process 16 (strace)": CRIU has to trace them itself, and each thread
// has one tracer at most. Empty: no process of the tree is traced, or by a CRIU that lets go of it.
std::string WhyTraced(pid_t root);

}  // namespace siding
