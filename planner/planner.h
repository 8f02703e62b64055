// Chooses the jobs that make way for a request. Pure: the same snapshot gives the same plan.
#pragma once

#include <vector>

#include "model/plan.h"
#include "model/policy.h"
#include "model/snapshot.h"

namespace siding {

// The set of actions of least cost (planner/options.h says what costs) that frees enough nodes by
// `request.start_by - policy.margin`, or a refusal with the earliest start_by that would work.
//
// Exact but for these roundings. What is written to shared storage is counted in `policy.budget_steps` steps
// of what the tier can take in the time, each victim rounded up: up to one step a victim may stay unused, so
// a plan is as good as the best for a tier that is slower by (victims / budget_steps). Losses are counted in
// node-milliseconds; that of an image in advance as if no other were taken on its nodes. Jobs of different
// shapes may migrate to no more nodes in all than the one with the fewest to go to finds. And where so many
// choices are nearly equal that the search is cut short, or where the images of the best plan have no room
// together in the shared tier, `plan.exact` is false; then a refusal is not a proof, and the start that it
// names is one that works, if not the earliest.
//
// The earliest start is the earliest if more time never makes anything impossible. That holds but for classes
// with `strict`, where more time may bring a better method into view for which there is no room then.
//
// Of plans of equal cost: that with the fewest victims, then with victims of lower priority (a victim counts
// 16, and its priority from 0 to 15); what is equal still is decided by looking at the jobs in the order of
// their ids. But where very many jobs depend on one another, only the cost is the least, and of plans of
// equal cost one is taken that was found quickly.
//
// Needs no lock and touches nothing; may be called from any thread.
Plan MakePlan(const Snapshot& snapshot, const Request& request, const Policy& policy);

// Several requests together, so that nodes freed early serve those who need them early: one plan each, in the
// order of `requests`. All are feasible, or none is: then nothing is said but that, as each may be feasible
// alone. Times are as certain as the request for the most nodes needs, delays as long as the longest stay.
// Who has to be gone by an earlier deadline writes first. At most kMostTogether requests, all alike in
// `per_node` and with not_before in the past: CanPlanTogether.
inline constexpr size_t kMostTogether = 3;
bool CanPlanTogether(const Snapshot& snapshot, const std::vector<Request>& requests);
std::vector<Plan> MakePlans(const Snapshot& snapshot, const std::vector<Request>& requests,
                            const Policy& policy);

}  // namespace siding
