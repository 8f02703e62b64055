// What processes have open or mapped, run or work in.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <functional>
#include <string>

namespace siding {

// A file that a process has, and what it can do with it: R_OK, W_OK, X_OK, or F_OK for nothing but its name.
struct Held {
  pid_t pid = 0;
  std::string how;   // "descriptor 3", "mapping 7f..", "working folder"
  std::string link;  // in /proc: leads to the file itself, whatever its name now means
  int access = F_OK;
};

// All that the processes of the tree have at this moment. For root.
void ForEachHeld(pid_t init, const std::function<void(const Held&)>& visit);

// The name that the kernel gives for a link in /proc: "/tmp/x", "/tmp/x (deleted)", "socket:[4711]". Empty:
// the process, or its file, is gone.
std::string TargetOf(const std::string& link);

}  // namespace siding
