// The planner's problem as an integer program, written down from its definition and solved by CBC
// (https://github.com/coin-or/Cbc): an answer that shares nothing with frontier.h, cover.h and dual.h. For
// tests and benchmarks.
#pragma once

#include <optional>
#include <string>

#include "model/policy.h"
#include "model/snapshot.h"

namespace siding {

// The first `cbc` on the PATH; "" if there is none.
std::string FindCbc();

struct MilpAnswer {
  bool proven = false;  // optimal, or infeasible
  bool feasible = false;
  double cost_seconds = 0;   // planner/options.h's cost, in node-seconds; of the best found
  double bound_seconds = 0;  // no plan costs less (as far as CBC got)
  double took_seconds = 0;
};

// Suspend, checkpoint, app and kill of one request whose not_before is past; no migration. Times and costs of
// each way are taken from MakeCandidates. Fails the program if cbc cannot be run.
MilpAnswer SolveWithCbc(const Snapshot& snapshot, const Request& request, const Policy& policy, int seconds);

}  // namespace siding
