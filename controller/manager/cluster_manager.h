// Who has the queue of this cluster: siding itself, Slurm, or Kubernetes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "controller/config.h"
#include "controller/engine/engine.h"
#include "controller/platform/platform.h"

namespace siding {

// While it lives, the engine hears what the cluster manager says, and its plugin's questions are answered.
class ClusterManagerSession {
 public:
  virtual ~ClusterManagerSession() = default;
};

// Not thread-safe.
class ClusterManager {
 public:
  // An error if the cluster manager cannot be reached by any way that this machine has. `may_act` is asked
  // before each change there.
  static absl::StatusOr<std::unique_ptr<ClusterManager>> Open(const ControllerConfig& config,
                                                              std::function<absl::Status()> may_act);
  // What in the manager's own settings keeps siding from its work, one line each for people; none: all is
  // well, or siding has the queue. An error if it cannot be asked.
  static absl::StatusOr<std::vector<std::string>> Check(const ControllerConfig& config);
  virtual ~ClusterManager() = default;

  virtual Platform& platform() = 0;  // lives as long as this
  // To the manager's users, that it did not take and that were given up. Thread-safe.
  virtual int64_t lost_messages() const { return 0; }
  // The way to the agents that the engine is to take, `agents` or one around it. Once, before Connect().
  virtual AgentLink& Around(AgentLink& agents) { return agents; }
  // Who is to hear of agents in the engine's place: it, or one around it. Once, before Connect().
  virtual AgentEvents& Around(AgentEvents& engine) { return engine; }
  // Once the engine has started. The engine must outlive the session, and this object both. nullptr: siding
  // has the queue, and there is nobody to listen to.
  virtual absl::StatusOr<std::unique_ptr<ClusterManagerSession>> Connect(Engine& engine) = 0;
};

}  // namespace siding
