// Slurm as siding's platform: what is observed there goes to a sink, and what is desired is brought about.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "controller/platform/platform.h"
#include "controller/platform/slurm/client/open.h"

namespace siding::slurm {

struct PlatformOptions {
  Backend backend = Backend::kAny;
  Duration interval = std::chrono::milliseconds(200);  // between two polls, at least
  bool steers = true;                                  // siding chooses who makes way; otherwise Slurm does
  bool suspends = true;  // siding may have Slurm suspend jobs, which frees their CPUs
  std::function<std::string(uint32_t uid)> user_name;
  std::function<absl::Status()> may_act;  // asked before each change; empty: all may be changed
};

class SlurmPlatform : public Platform {
 public:
  // What there is to hear; on a thread of its own, one call at a time.
  using Sink = std::function<void(ManagerChanges)>;
  // Begins to poll. Once. SetDesired() may come before.
  virtual void Start(Sink sink) = 0;
  // Waits for a poll that is under way; nothing is heard or done afterwards.
  virtual void Stop() = 0;
  // Fills in what only Slurm knows of a job that is about to be submitted: how much a whole node is.
  // Thread-safe.
  virtual void Complete(JobSpec& job) const = 0;
};

// kNotFound if there is no way to Slurm on this machine; see open.h.
absl::StatusOr<std::unique_ptr<SlurmPlatform>> OpenSlurmPlatform(const PlatformOptions& options,
                                                                 const Clock& clock);
// The same with a client that is given.
std::unique_ptr<SlurmPlatform> NewSlurmPlatform(std::unique_ptr<Client> client,
                                                const PlatformOptions& options, const Clock& clock);

}  // namespace siding::slurm
