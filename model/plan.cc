#include "model/plan.h"

#include <algorithm>
#include <map>

namespace siding {
namespace {

constexpr const char* kNames[kKeepRuleCount] = {
    "unsaid",          "on-demand",   "leaving",  "not-preemptible", "cannot-leave", "protected",
    "max-preemptions", "min-runtime", "cooldown", "method-paused",   "no-room",      "not-measured",
    "elsewhere",       "too-slow",    "awaited",  "not-needed",      "refused",      "being-saved"};

}  // namespace

std::string ToString(KeepRule rule) { return kNames[static_cast<int>(rule)]; }

std::optional<KeepRule> ParseKeepRule(const std::string& name) {
  for (int i = 0; i < kKeepRuleCount; ++i) {
    if (kNames[i] == name) return static_cast<KeepRule>(i);
  }
  return std::nullopt;
}

std::vector<KeptGroup> GroupKept(const std::vector<PlanKeep>& kept) {
  std::map<decltype(GroupOf(PlanKeep())), int> counts;
  for (const PlanKeep& keep : kept) ++counts[GroupOf(keep)];
  std::vector<KeptGroup> groups;
  for (const auto& [key, jobs] : counts) {
    const auto& [rule, policy_key, job_class] = key;
    groups.push_back({rule, policy_key, job_class, jobs});
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const KeptGroup& a, const KeptGroup& b) { return a.jobs > b.jobs; });
  return groups;
}

}  // namespace siding
