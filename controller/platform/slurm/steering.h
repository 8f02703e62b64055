// Keeps Slurm as it is wished to be, one turn after the other.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/units.h"
#include "controller/platform/slurm/client.h"
#include "controller/platform/slurm/wishes.h"

namespace siding::slurm {

// What was tried, and what came of it.
struct StepTaken {
  Step step;
  absl::Status status;
};

// A turn that failed is tried again after this, or when something has changed.
inline constexpr Duration kTryAgain = std::chrono::seconds(5);

// Not thread-safe. The client must outlive it.
class Steering {
 public:
  explicit Steering(Client& client) : client_(client) {}

  // From now on these are the wishes. Before the first ones nothing is done and nothing taken back: a
  // controller that has just started does not know yet what it wants.
  void Want(Wishes wishes);

  // Takes the steps from these jobs, as they are now, to what is wished; none while nothing has changed. A
  // step that fails does not keep the others from being taken.
  std::vector<StepTaken> Turn(const std::vector<QueueJob>& jobs, bool changed, Time now);

 private:
  Client& client_;
  std::optional<Wishes> wishes_;
  bool due_ = false;  // the wishes are new
  std::optional<Time> retry_;
};

}  // namespace siding::slurm
