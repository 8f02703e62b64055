// What is compared: ways of serving on-demand jobs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/policy.h"

namespace siding::sim {

struct Strategy {
  enum class Kind {
    kPlan,         // the planner, with a policy
    kReservation,  // a fixed part of the machine that batch jobs never get
    kWait,         // on-demand jobs go to the head of the queue
  };
  std::string name;
  Kind kind = Kind::kPlan;
  Policy policy;
};

// As in policies/default.yaml.
Policy DefaultPolicy();

// siding, kill-only, checkpoint-all, slurm-preempt, slurm-youngest-first, pbs-order, kueue-classical,
// static-reservation, none. `siding`: the policy of the strategy of that name.
std::vector<Strategy> AllStrategies(const Policy& siding);
// "all", or names with commas between them.
absl::StatusOr<std::vector<Strategy>> ParseStrategies(const std::string& names, const Policy& siding);

}  // namespace siding::sim
