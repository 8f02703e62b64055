// What a site values. Read from policies/*.yaml by the controller; a plain value here.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "common/units.h"

namespace siding {

struct Policy {
  Duration margin = std::chrono::seconds(1);       // kept free before every deadline
  Duration min_runtime = std::chrono::seconds(0);  // a job that runs for less is no victim
  Duration cooldown = std::chrono::seconds(0);     // after a preemption, before the next
  int max_preemptions = 100;                       // per job, unless the job says less
  int budget_steps = 64;                           // resolution of the shared-storage budget
  int keep_checkpoints = 2;                        // per job; older ones are deleted
  std::set<std::string> operators = {"root"};      // users who may act on every job
};

}  // namespace siding
