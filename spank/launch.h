// At a task's start: talk to the agent, leave the shim behind, become the task. All functions return null, or
// what went wrong, and then have changed nothing.
#pragma once

#include "spank/messages.h"

namespace siding::spank {

struct Launch {
  char task_program[kMaxPath] = "";
  const char* kind = "";  // of task, as siding-slurm-task is told
  int task_fd = -1;       // this process's end of the socket pair with the shim
  bool prepared() const { return task_fd >= 0; }
  bool tried() const { return task_program[0] != '\0'; }
};

// As root: connects to the agent at `socket` and leaves the connection and the registration to the shim,
// started as a child of this process from the folder `programs`. Waits for the agent for a gang's task only,
// for 20 s.
const char* Prepare(const char* socket, const char* programs, const Registration& registration,
                    Launch& launch);

// As the user: execs siding-slurm-task in place of the command, also if there is no shim. Returns only if
// that fails.
const char* Become(const Launch& launch, int argc, char** argv, char** environment);

}  // namespace siding::spank
