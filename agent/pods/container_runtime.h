// What is asked of the program that runs containers.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/pods/messages.h"

namespace siding {

// Thread-safe. Calls block.
class ContainerRuntime {
 public:
  virtual ~ContainerRuntime() = default;
  // The container's first process. kNotFound: there is no such container, or it has ended.
  virtual absl::StatusOr<pid_t> InitOf(const ContainerRef& container) = 0;
  // Returns when all its processes are frozen. OK if they were.
  virtual absl::Status Pause(const ContainerRef& container) = 0;
  virtual absl::Status Resume(const ContainerRef& container) = 0;
  virtual absl::StatusOr<bool> IsPaused(const ContainerRef& container) = 0;
  // Of one that is paused, and stays so: writes its processes into `image_folder`. `work_folder` gets the
  // log.
  virtual absl::Status Checkpoint(const ContainerRef& container, const std::string& image_folder,
                                  const std::string& work_folder) = 0;
};

// runc, at this path or in PATH, with the criu of that folder.
std::unique_ptr<ContainerRuntime> NewRunc(const std::string& program, const std::string& criu_folder);

}  // namespace siding
