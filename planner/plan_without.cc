#include "planner/plan_without.h"

#include <algorithm>
#include <utility>

namespace siding {
namespace {

// In the order of the steps; one that is saved early has two.
std::vector<JobId> JobsOf(const Plan& plan) {
  std::vector<JobId> jobs;
  for (const PlanStep& step : plan.steps) {
    if (std::find(jobs.begin(), jobs.end(), step.job) == jobs.end()) jobs.push_back(step.job);
  }
  return jobs;
}

void MarkNextBest(std::vector<PlanWithout>& without) {
  PlanWithout* best = nullptr;
  for (PlanWithout& one : without) {
    if (one.feasible && (best == nullptr || one.cost_node_seconds < best->cost_node_seconds)) best = &one;
  }
  if (best != nullptr) best->next_best = true;
}

}  // namespace

std::vector<PlanWithout> PlansWithout(const Plan& plan, Snapshot snapshot,
                                      absl::FunctionRef<Plan(const Snapshot&)> make, size_t most) {
  const std::vector<JobId> jobs = JobsOf(plan);
  if (!plan.feasible || jobs.size() > most) return {};
  std::vector<PlanWithout> without;
  for (const JobId spared : jobs) {
    const auto job = std::find_if(snapshot.jobs.begin(), snapshot.jobs.end(),
                                  [&](const JobView& view) { return view.id == spared; });
    if (job == snapshot.jobs.end()) continue;
    const MethodSet methods = std::exchange(job->methods, {});
    const Plan made = make(snapshot);
    job->methods = methods;
    PlanWithout one{spared, made.feasible, JobsOf(made), made.loss_node_seconds, made.cost_node_seconds};
    std::sort(one.jobs.begin(), one.jobs.end());
    without.push_back(std::move(one));
  }
  MarkNextBest(without);
  return without;
}

}  // namespace siding
