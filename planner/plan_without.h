// "Why this job?": for each job that makes way, the plan that leaves it alone, and what the others lose then.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/functional/function_ref.h"
#include "model/plan.h"
#include "model/snapshot.h"

namespace siding {

// For each job that makes way by `plan`, which `make` made of the snapshot, in the order of its steps. Each
// takes a plan, so there is none at all where more than `most` jobs make way: of some of them the next best
// plan would not follow. None either for a plan that is not feasible. Pure if `make` is.
inline constexpr size_t kMostSpared = 16;
std::vector<PlanWithout> PlansWithout(const Plan& plan, Snapshot snapshot,
                                      absl::FunctionRef<Plan(const Snapshot&)> make,
                                      size_t most = kMostSpared);

}  // namespace siding
