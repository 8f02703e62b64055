// Who has the queue at this site: siding itself, or Slurm.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "controller/config.h"
#include "controller/engine/engine.h"
#include "controller/platform/platform.h"

namespace siding {

// Not thread-safe.
class Site {
 public:
  // While it lives, the engine hears what the cluster manager says, and its plugin's questions are answered.
  class Watching {
   public:
    virtual ~Watching() = default;
  };

  // An error if the cluster manager cannot be reached by any way that this machine has. `may_act` is asked
  // before each change there.
  static absl::StatusOr<std::unique_ptr<Site>> Open(const SlurmConfig& slurm,
                                                    std::function<absl::Status()> may_act);
  virtual ~Site() = default;

  virtual Platform& platform() = 0;  // lives as long as the site
  // Once the engine has started. The engine must outlive what is returned, and the site both.
  virtual absl::StatusOr<std::unique_ptr<Watching>> Watch(Engine& engine) = 0;
};

}  // namespace siding
