#include "controller/platform/kubernetes/objects/budget.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "controller/platform/kubernetes/client/status_fields.h"

namespace siding::kubernetes {

namespace {

constexpr int64_t kMostAllowed = 1'000'000;

}  // namespace

Budget BudgetFrom(const Object& object) {
  const Json& json = *object.json;
  Budget budget{.name = object.name};
  for (auto& [key, value] : TextsAt(json, {"spec", "selector", "matchLabels"}))
    budget.labels.push_back({key, "In", {value}});
  for (Requirement& requirement : RequirementsAt(json, {"spec", "selector", "matchExpressions"}))
    budget.labels.push_back(std::move(requirement));
  // What an empty selector covers depends on the version, and its controller has counted.
  budget.covers_any = WholeAt(json, {"status", "expectedPods"}) > 0;
  // One that was changed and not been looked at since lets nobody go.
  const bool is_current =
      WholeAt(json, {"status", "observedGeneration"}) >= WholeAt(json, {"metadata", "generation"});
  const int64_t allowed = is_current ? WholeAt(json, {"status", "disruptionsAllowed"}) : 0;
  budget.lets_go = static_cast<int>(std::clamp<int64_t>(allowed, 0, kMostAllowed));
  return budget;
}

bool IsReady(const Pod& pod) { return HasCondition(*pod.json, "Ready"); }

bool Covers(const Budget& budget, const Pod& pod) {
  if (!budget.covers_any || budget.name.space != pod.name.space) return false;
  const auto labels = TextsAt(*pod.json, {"metadata", "labels"});
  return std::all_of(budget.labels.begin(), budget.labels.end(),
                     [&](const Requirement& requirement) { return IsMet(requirement, labels); });
}

}  // namespace siding::kubernetes
