// The namespaces of a task's processes: CRIU dumps those that they have together.
#pragma once

#include <sys/types.h>

#include <array>
#include <optional>
#include <string>

namespace siding {

// The namespaces of a task, which are its init's. A mount namespace of its own is dumped.
class TaskNamespaces {
 public:
  explicit TaskNamespaces(pid_t init);

  // Why a process that is not in all of them cannot be dumped; empty: it is, or it is gone. `links` is its
  // folder /proc/PID/ns, or that of one of its threads.
  std::string WhyNotDumpable(const std::string& links) const;

 private:
  std::array<std::string, 9> own_;
};

// What a task's ipc namespace holds that no process needs to have open.
struct IpcState {
  bool has_semaphores = false;          // of System V
  std::string message_queue;            // the name of one of POSIX; empty: there is none
  std::optional<dev_t> message_queues;  // the device on which they are, open ones too
};

// Moves the calling thread into the ipc namespace of the process, for good, and looks around there. The
// thread has undone no semaphore operation and has none to undo, as one in which nothing has used System V
// semaphores. What is the machine's own, as where both are in one namespace, is left out. For root.
IpcState EnterIpcNamespace(pid_t pid);

}  // namespace siding
