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

// What the policy says for the jobs of a trace: they are all of its first class, if it has any.
Duration MostLostWork(const Policy& policy);
// The same, with most_lost_work: 60s unless it has one.
Policy Protected(Policy policy);

// As in policies/default.yaml.
Policy DefaultPolicy();

// siding, siding-protected, siding-protected-local, kill-only, checkpoint-all, slurm-preempt,
// slurm-youngest-first, pbs-order, kueue-classical, static-reservation, none. `siding`: the policy of the
// strategy of that name, and, made Protected(), of siding-protected. siding-protected-local: that one's with
// checkpoint_tier: local. `protect`: all have its checkpoints on schedule.
std::vector<Strategy> AllStrategies(const Policy& siding, bool protect = false);
// "all", or names with commas between them.
absl::StatusOr<std::vector<Strategy>> ParseStrategies(const std::string& names, const Policy& siding,
                                                      bool protect = false);

}  // namespace siding::sim
