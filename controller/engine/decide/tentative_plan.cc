#include "controller/engine/decide/tentative_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/units.h"
#include "controller/engine/decide/plan_record.h"
#include "controller/engine/state/predicates.h"
#include "planner/plan_without.h"
#include "planner/planner.h"

namespace siding {
namespace {

Resources FreeForAll(const PlanningTask& task, const NodeView& node) {
  const auto free = task.together->find(node.id);
  return free == task.together->end() ? node.free : free->second;
}

Snapshot SeenTogether(const PlanningTask& task) {
  Snapshot snapshot = task.alone;
  for (NodeView& node : snapshot.nodes) node.free = FreeForAll(task, node);
  return snapshot;
}

// An allowance of which the plans take more than is left.
struct Excess {
  std::string name;
  int left = 0;
  std::set<JobId> taken;  // of those that the plans take, the cheapest for which there is enough
};

// What the job takes of the allowance.
int TakesOf(const PlanningTask& task, JobId job, const std::string& name) {
  const auto its = task.allowances.find(job);
  if (its == task.allowances.end()) return 0;
  int takes = 0;
  for (const Allowance& one : its->second) takes += one.name == name ? one.takes : 0;
  return takes;
}

// The losses of the jobs that leave by the plans, the cheapest first.
std::vector<std::pair<double, JobId>> LeavingBy(const std::vector<Plan>& plans) {
  std::vector<std::pair<double, JobId>> leaving;
  for (const Plan& plan : plans) {
    for (const PlanStep& step : plan.steps) {
      if (!step.early) leaving.push_back({step.loss_node_seconds, step.job});
    }
  }
  std::sort(leaving.begin(), leaving.end());
  return leaving;
}

std::optional<Excess> ExcessOf(const std::vector<Plan>& plans, const Snapshot& snapshot,
                               const PlanningTask& task) {
  const auto leaving = LeavingBy(plans);
  std::map<std::string, int> left;
  for (const auto& [loss, job] : leaving) {
    const auto its = task.allowances.find(job);
    if (its == task.allowances.end()) continue;
    for (const Allowance& one : its->second) {
      const auto [known, is_new] = left.emplace(one.name, one.left);
      known->second = std::min(known->second, one.left);
    }
  }
  for (const auto& [name, in_all] : left) {
    Excess excess{name, in_all, {}};
    int rest = in_all;
    for (const JobView& job : snapshot.jobs) {
      if (job.releasing_at) rest -= TakesOf(task, job.id, name);
    }
    bool exceeds = false;
    for (const auto& [loss, job] : leaving) {
      const int takes = TakesOf(task, job, name);
      if (takes <= 0 || excess.taken.contains(job)) continue;
      if (takes > rest) {
        exceeds = true;
        continue;
      }
      rest -= takes;
      excess.taken.insert(job);
    }
    if (exceeds) return excess;
  }
  return std::nullopt;
}

Plan MakeAlone(const PlanningTask& task, const Snapshot& snapshot, const Request& request) {
  const auto make = [&](const Snapshot& seen) -> std::vector<Plan> {
    return {MakePlan(seen, request, task.policy)};
  };
  return std::move(WithinAllowances(task, snapshot, make).front());
}

bool LeavesMargin(Time start, const Request& request, const Policy& policy) {
  return std::max(start, request.not_before) <= request.start_by - policy.margin;
}

constexpr Duration kSlack = std::chrono::seconds(2);
constexpr int kSlackPart = 50;

}  // namespace

Time WithSlack(Time earliest, Time now) {
  const Time later = earliest + std::max(kSlack, (earliest - now) / kSlackPart);
  return std::chrono::ceil<std::chrono::seconds>(later);
}

std::vector<Plan> WithinAllowances(const PlanningTask& task, Snapshot snapshot,
                                   absl::FunctionRef<std::vector<Plan>(const Snapshot&)> make) {
  for (;;) {
    std::vector<Plan> plans = make(snapshot);
    const std::optional<Excess> excess = ExcessOf(plans, snapshot, task);
    if (!excess) return plans;
    for (JobView& job : snapshot.jobs) {
      if (excess->taken.contains(job.id) || TakesOf(task, job.id, excess->name) <= 0) continue;
      job.methods = {};
      job.methods_note = absl::StrCat(excess->name, " lets ", excess->left, " go, and others are taken");
    }
  }
}

// If planning them together fails, the first is planned with what the others leave.
std::vector<Plan> MakePlans(const PlanningTask& task) {
  if (task.together && CanPlanTogether(task.alone, task.requests)) {
    std::vector<Plan> plans = WithinAllowances(task, SeenTogether(task), [&](const Snapshot& snapshot) {
      return MakePlans(snapshot, task.requests, task.policy);
    });
    if (plans.front().feasible) return plans;
  }
  return {MakeAlone(task, task.alone, task.requests.front())};
}

std::vector<Plan> MakeFirstPlans(const PlanningTask& task) {
  std::vector<Plan> plans = MakePlans(task);
  const Plan& plan = plans.front();
  const Request& request = task.requests.front();
  if (!plan.feasible || LeavesMargin(plan.predicted_start, request, task.policy)) return plans;
  Plan refused;
  refused.request = plan.request;
  refused.exact = plan.exact;
  refused.refusal =
      absl::StrCat("its nodes can be free by then, but less than ", FormatDuration(task.policy.margin),
                   " before, which the policy keeps free (margin)");
  refused.earliest = std::max(plan.predicted_start, request.not_before) + task.policy.margin;
  return {std::move(refused)};
}

Plan MakeLatePlan(const PlanningTask& task, const Plan& refused) {
  Request request = task.requests.front();
  request.start_by = *refused.earliest;
  Plan plan = MakeAlone(task, task.alone, request);
  plan.refusal = absl::StrCat("late: ", refused.refusal);
  return plan;
}

std::vector<Plan> MakePlansAtLeastLate(const PlanningTask& task) {
  std::vector<Plan> plans = MakePlans(task);
  const Plan& first = plans.front();
  if (!first.feasible && first.earliest) plans = {MakeLatePlan(task, first)};
  return plans;
}

std::vector<PlanWithout> PlansWithout(const PlanningTask& task, const std::vector<Plan>& plans) {
  if (plans.size() != 1 || !plans.front().refusal.empty()) return {};
  return PlansWithout(plans.front(), task.alone, [&](const Snapshot& snapshot) {
    return MakeAlone(task, snapshot, task.requests.front());
  });
}

TentativePlan PlanTentatively(SharedTask shared, std::vector<Plan> plans) {
  const PlanningTask& task = *shared;
  TentativePlan tentative{std::move(plans), task.alone.now, task.seq, {}, {}, std::move(shared)};
  std::set<NodeId> used;
  for (Plan& plan : tentative.plans) {
    plan = ForTheRecord(std::move(plan));
    tentative.jobs.insert(plan.request);
    used.insert(plan.nodes.begin(), plan.nodes.end());
    for (const PlanStep& step : plan.steps) {
      tentative.jobs.insert(step.job);
      used.insert(step.target.begin(), step.target.end());
    }
  }
  const bool together = tentative.plans.size() > 1;
  for (const NodeView& node : task.alone.nodes) {
    if (used.contains(node.id)) tentative.free[node.id] = together ? FreeForAll(task, node) : node.free;
  }
  for (const JobView& job : task.alone.jobs) {
    const bool is_there = std::any_of(job.nodes.begin(), job.nodes.end(),
                                      [&](const NodeId& node) { return used.contains(node); });
    if (is_there) tentative.jobs.insert(job.id);
  }
  return tentative;
}

bool HasStep(const TentativePlan& tentative, JobId job) {
  return std::any_of(tentative.plans.begin(), tentative.plans.end(), [&](const Plan& plan) {
    return std::any_of(plan.steps.begin(), plan.steps.end(),
                       [&](const PlanStep& step) { return step.job == job; });
  });
}

bool Invalidates(const Event& event, const TentativePlan& tentative) {
  // One that is to leave has to be there for its order.
  if (OnlySaves(event) && !HasStep(tentative, event.job)) return false;
  return event.job == JobId() || tentative.jobs.contains(event.job) ||
         std::holds_alternative<RequestPlanned>(event.body);
}

bool IsInTime(const TentativePlan& tentative, const Request& request, const Policy& policy, Time now) {
  return LeavesMargin(tentative.plans.front().predicted_start + (now - tentative.made), request, policy);
}

}  // namespace siding
