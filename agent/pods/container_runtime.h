// What is asked of the program that runs containers.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/pods/end_runc.h"
#include "agent/pods/messages.h"
#include "common/units.h"

namespace siding {

// Thread-safe. Calls block, each for a limited time. kDeadlineExceeded: the program that was called did not
// end by itself.
class ContainerRuntime {
 public:
  virtual ~ContainerRuntime() = default;
  // The container's first process. kNotFound: there is no such container, or it has ended.
  virtual absl::StatusOr<pid_t> InitOf(const ContainerRef& container) = 0;
  // Returns when all its processes are frozen. OK if they were.
  virtual absl::Status Pause(const ContainerRef& container) = 0;
  // Also where the program that runs containers does not answer.
  virtual absl::Status Resume(const ContainerRef& container) = 0;
  virtual absl::StatusOr<bool> IsPaused(const ContainerRef& container) = 0;
  // Of one that is paused, and stays so: writes its processes into `image_folder`. `work_folder` gets the
  // log. `abandon`, set from another thread, has that undone; kAborted then. Whatever was started for it has
  // ended when this returns, unless the kernel does not let it end.
  virtual absl::Status Checkpoint(const ContainerRef& container, const std::string& image_folder,
                                  const std::string& work_folder, const std::atomic<bool>& abandon) = 0;
};

struct RuncPatience {
  Duration usual = std::chrono::seconds(30);  // of each call but of a checkpoint
  Duration checkpoint = std::chrono::minutes(60);
  Duration undo = kRuncUndoPatience;
};

// runc, at this path or in PATH, with the criu of that folder.
std::unique_ptr<ContainerRuntime> NewRunc(const std::string& program, const std::string& criu_folder,
                                          const RuncPatience& patience = {});

}  // namespace siding
