// Planning without the engine's lock, since a plan may take longer than other calls should wait. Its whole
// input is a value; what it rests on is kept, and checked when the lock is held again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "absl/functional/function_ref.h"
#include "controller/engine/state/cluster_state.h"
#include "controller/platform/manager.h"
#include "model/plan.h"
#include "model/policy.h"
#include "model/snapshot.h"

namespace siding {

struct PlanningTask {
  int64_t seq = 0;  // the last event that is in it
  Policy policy;
  std::vector<Request> requests;  // the one that is asked for, and others that wait
  Snapshot alone;                 // as the first sees it
  // What is free as all of them see it, in which alone they differ; none: they are not planned together.
  std::optional<std::map<NodeId, Resources>> together;
  // Of jobs in `alone`, which share them by name: the search knows nothing of them.
  std::map<JobId, std::vector<Allowance>> allowances;
};
using SharedTask = std::shared_ptr<const PlanningTask>;
// The plan of the first request comes first; plans of others follow if theirs change with it. Pure.
std::vector<Plan> MakePlans(const PlanningTask& task);
// The plans that `make` makes of the snapshot, or of one in which some stay: they take no more of an
// allowance than there is. Where they would, those that take of it stay but for the cheapest for which there
// is enough left; the rest is planned again. So there is one plan more for each allowance at most, and the
// last need not be the best of those that take no more. Pure if `make` is.
std::vector<Plan> WithinAllowances(const PlanningTask& task, Snapshot snapshot,
                                   absl::FunctionRef<std::vector<Plan>(const Snapshot&)> make);
// For a request that is not admitted yet. Also refused if its start is nearer to its deadline than the
// policy's margin, which covers what the plan does not include, such as the start itself. An admitted request
// may use the margin up. Pure.
std::vector<Plan> MakeFirstPlans(const PlanningTask& task);

// For the earliest start that `refused` says is possible. The refusal stays, to say that it will be late.
// Pure.
Plan MakeLatePlan(const PlanningTask& task, const Plan& refused);
// For a request that was admitted before: if its deadline cannot be met, it is late. Pure.
std::vector<Plan> MakePlansAtLeastLate(const PlanningTask& task);

// For each job that makes way by the plan of the first request, what would be done without it. Empty where
// requests were planned together, or the start is later than was asked for. Pure.
std::vector<PlanWithout> PlansWithout(const PlanningTask& task, const std::vector<Plan>& plans);

// The start that a refusal names, and that `--start-by earliest` gets: it is requested and planned again
// before it is promised. Two seconds later than what was found, or a fiftieth of the time until then if that
// is more, because memory grows meanwhile; rounded up to a whole second.
Time WithSlack(Time earliest, Time now);

// Plans as of a moment, and what they rest on.
struct TentativePlan {
  std::vector<Plan> plans;  // as they are recorded; the first is of the request that was asked for
  Time made;
  int64_t seq = 0;
  std::set<JobId> jobs;              // those that they are for or move, and those on the nodes that they use
  std::map<NodeId, Resources> free;  // on these nodes, as the requests saw it
  SharedTask task;                   // of which they were made
};
// `plans`: made of the task. Pure.
TentativePlan PlanTentatively(SharedTask task, std::vector<Plan> plans);

// An event after which the plans may be wrong: it concerns one of their jobs (but that one is saved matters
// only if it is to leave); or no job, such as a cordoned
// node; or another request was planned, which may count on the same nodes or the same storage.
bool Invalidates(const Event& event, const TentativePlan& tentative);
// If the first plan begins now, it is still in time, with the policy's margin.
bool IsInTime(const TentativePlan& tentative, const Request& request, const Policy& policy, Time now);

}  // namespace siding
