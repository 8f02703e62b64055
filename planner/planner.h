// Chooses the jobs that make way for a request. Pure: the same snapshot gives the same plan.
#pragma once

#include "model/plan.h"
#include "model/policy.h"
#include "model/snapshot.h"

namespace siding {

// The cheapest set of actions (least loss in node-seconds) that frees enough nodes by
// `request.start_by - policy.margin`, or a refusal with the earliest start_by that would work.
// Needs no lock and touches nothing; may be called from any thread.
Plan MakePlan(const Snapshot& snapshot, const Request& request, const Policy& policy);

}  // namespace siding
