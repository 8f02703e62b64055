// A plain greedy choice of victims, to see what an exact one is worth; and a judge of plans, whoever made
// them. For tests and benchmarks.
#pragma once

#include <string>
#include <vector>

#include "model/plan.h"
#include "model/policy.h"
#include "model/snapshot.h"

namespace siding {

// As MakePlans (planner/planner.h), but for how victims are chosen: the nodes that cost least to clear first,
// a job's cost shared among its nodes; each job leaves by the cheapest way for which there is still room and
// time; until there are enough nodes. Then those that are not needed stay, the most expensive first. If that
// frees too few nodes, once more by the ways that write least. Infeasible says only that this found nothing.
// Bytes to shared storage are counted as they are, not in `policy.budget_steps`. No images in advance and no
// migration. Pure; the requests are in the order of their deadlines.
std::vector<Plan> MakeGreedyPlans(const Snapshot& snapshot, const std::vector<Request>& requests,
                                  const Policy& policy);

// What is wrong with feasible plans for these requests; "" if nothing is. Looks at what the plans say and at
// the snapshot: each victim may leave so and is done in time, the nodes are then free, and no disk, no node's
// way to a tier and not the shared tier are used beyond what they can take. Requests and steps begin now.
std::string WhatIsWrong(const Snapshot& snapshot, const std::vector<Request>& requests, const Policy& policy,
                        const std::vector<Plan>& plans);

}  // namespace siding
