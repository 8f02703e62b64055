#include "controller/platform/kubernetes/fake/fake_budgets.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace siding::kubernetes {
namespace {

bool IsReady(const Json& pod) {
  for (const Json& condition : ListAt(pod, {"status", "conditions"})) {
    if (TextAt(condition, {"type"}) == "Ready") return TextAt(condition, {"status"}) == "True";
  }
  return false;
}

bool Covers(const Json& budget, const Json& pod) {
  if (TextAt(budget, {"metadata", "namespace"}) != TextAt(pod, {"metadata", "namespace"})) return false;
  const Json* labels = Find(budget, {"spec", "selector", "matchLabels"});
  if (labels == nullptr || !labels->is_object()) return false;
  for (const auto& [name, value] : labels->items()) {
    const Json* has = Find(pod, {"metadata", "labels", name});
    if (has == nullptr || *has != value) return false;
  }
  return true;
}

}  // namespace

bool LabelsMatch(const Json& object, const std::string& selector, bool& simple) {
  for (const std::string& term : std::vector<std::string>(absl::StrSplit(selector, ',', absl::SkipEmpty()))) {
    if (term.find_first_of("!() ") != std::string::npos) simple = false;
    const std::vector<std::string> parts = absl::StrSplit(term, absl::MaxSplits('=', 1));
    const Json* has = Find(object, {"metadata", "labels", parts[0]});
    if (has == nullptr || (parts.size() == 2 && *has != parts[1])) return false;
  }
  return true;
}

int BudgetsOf(const Json& pod, const FakeStore::Objects& budgets) {
  return static_cast<int>(std::count_if(budgets.begin(), budgets.end(),
                                        [&](const auto& budget) { return Covers(*budget.second, pod); }));
}

std::string BudgetAgainst(const Json& pod, const FakeStore::Objects& pods,
                          const FakeStore::Objects& budgets) {
  if (!IsReady(pod)) return "";
  for (const auto& [name, budget] : budgets) {
    if (!Covers(*budget, pod)) continue;
    int64_t covered = 0;
    int64_t ready = 0;
    for (const auto& [pod_name, other] : pods) {
      if (!Covers(*budget, *other)) continue;
      ++covered;
      if (IsReady(*other) && Find(*other, {"metadata", "deletionTimestamp"}) == nullptr) ++ready;
    }
    const int64_t most_away = WholeAt(*budget, {"spec", "maxUnavailable"}, -1);
    const int64_t needed =
        most_away >= 0 ? covered - most_away : WholeAt(*budget, {"spec", "minAvailable"}, 0);
    if (ready - 1 < needed) {
      return absl::StrCat("The disruption budget ", name.name, " needs ", needed, " healthy pods and has ",
                          ready, " currently");
    }
  }
  return "";
}

}  // namespace siding::kubernetes
