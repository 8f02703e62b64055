// Whether tasks can start on this node: what a start needs is tried. Without it, a node whose state folder is
// full would look idle, and fail one job after another.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/node/regular_look.h"
#include "agent/os/freezer.h"

namespace siding {

// What a start needs of a node.
struct StartNeeds {
  std::string state_dir;
  std::string temp_dir;               // for a folder of each task's; empty: it needs none
  std::vector<std::string> programs;  // their paths
  Freezer freezer;
  std::function<std::string()> why_no_namespaces;  // as LookForNamespaces() gives; none: it needs none
};

// Whether this process may give a task namespaces of its own, and a /proc in them, which takes root: tried in
// a child. 0: it may; otherwise an error of the kernel.
int TryNamespaces();

// Why it may not; empty: it may. What does not change in a process's life is tried once. For one thread.
std::function<std::string()> LookForNamespaces(std::function<int()> attempt = TryNamespaces);

// Makes and removes a file in the state folder, a folder for temporary files, and a cgroup. Empty: nothing is
// known against a start.
std::string WhyNoStart(const StartNeeds& needs);

// Thread-safe.
class SelfCheck {
 public:
  // A check that takes longer hangs: the state folder does not answer.
  static constexpr Duration kPatience = std::chrono::minutes(1);

  SelfCheck(StartNeeds needs, const Clock& clock);

  // Never blocks. Empty: tasks can start, as far as is known.
  std::string problem() const;

 private:
  const StartNeeds needs_;
  RegularLook<std::string> look_;
};

}  // namespace siding
