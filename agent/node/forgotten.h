// Tasks that are forgotten, and of which something is still to be removed.
#pragma once

#include <functional>
#include <string>

#include "agent/node/leftovers.h"

namespace siding {

// In a task's folder: what its job's temporary folder is called since it is to be removed.
inline constexpr char kRemovedNote[] = "removed";

// As long as the removal takes, the folder lies apart from those of tasks: a task that comes meanwhile may
// have the same name. An agent that is started then goes on with it.
//
// Thread-safe.
class Forgotten {
 public:
  // `folder`: made if it is not there, on the file system of the tasks' folders. `leftovers` must outlive it.
  Forgotten(std::string folder, Leftovers& leftovers);
  // What an earlier agent has left.
  void GoOn();
  // A task's folder. When this returns its name is free; what its note names is removed, and then it.
  void Take(const std::string& task);

 private:
  void Remove(const std::string& path);

  const std::string folder_;
  Leftovers& leftovers_;
};

// Of a user's folder.
std::function<void()> RemovalOf(const std::string& path, uid_t uid, gid_t gid);

}  // namespace siding
