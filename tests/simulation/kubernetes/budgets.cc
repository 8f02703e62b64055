#include "tests/simulation/kubernetes/budgets.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace siding::simulation::pods {

using namespace std::chrono_literals;
using kubernetes::TextAt;
using kubernetes::WholeAt;

namespace {

constexpr int kMoreThanThereAre = 1000;

}  // namespace

bool CoversApp(const Json& budget, const Json& pod) {
  return TextAt(budget, {"metadata", "namespace"}) == TextAt(pod, {"metadata", "namespace"}) &&
         TextAt(budget, {"spec", "selector", "matchLabels", "app"}) ==
             TextAt(pod, {"metadata", "labels", "app"});
}

bool IsPodReady(const Json& pod) {
  const Json& conditions = kubernetes::ListAt(pod, {"status", "conditions"});
  return std::any_of(conditions.begin(), conditions.end(), [](const Json& one) {
    return TextAt(one, {"type"}) == "Ready" && TextAt(one, {"status"}) == "True";
  });
}

void BudgetKeeper::OnChange(const FakeStore::Event& event) {
  if (event.plural == "pods" || event.plural == Budgets().plural) LookSoon(event.name.space);
}

Json BudgetKeeper::Draw() {
  const bool least = lab_.random.Chance(0.5);
  Json spec = {{"minAvailable", nullptr}, {"maxUnavailable", nullptr}};
  spec[least ? "minAvailable" : "maxUnavailable"] = lab_.random.Between(0, 2);
  return spec;
}

void BudgetKeeper::Make(const std::string& space, const std::string& app) {
  Json spec = Draw();
  spec.erase(spec["minAvailable"].is_null() ? "minAvailable" : "maxUnavailable");
  spec["selector"] = {{"matchLabels", {{"app", app}}}};
  const bool is_new = cluster_.Create(
      Budgets(), space,
      {{"metadata", {{"name", app}, {"namespace", space}, {"generation", 1}}}, {"spec", std::move(spec)}});
  if (is_new) lab_.trace("user", "makes the budget ", space, "/", app);
}

void BudgetKeeper::ChangeOne() {
  std::vector<ObjectName> names;
  for (const auto& [name, budget] : cluster_.All(Budgets().plural)) names.push_back(name);
  if (names.empty()) return;
  const ObjectName name = lab_.random.OneOf(names);
  if (lab_.random.Chance(0.2)) {
    lab_.trace("user", "deletes the budget ", ToString(name));
    cluster_.Delete(Budgets(), name, "");
  } else {
    Change(name, Draw());
  }
}

void BudgetKeeper::Forbid(const std::string& space, const std::string& app) {
  Make(space, app);
  Change({space, app}, {{"minAvailable", kMoreThanThereAre}, {"maxUnavailable", nullptr}});
}

// As the server, which counts changes of what users ask.
void BudgetKeeper::Change(const ObjectName& name, Json spec) {
  const FakeStore::Value budget = cluster_.Find(Budgets().plural, name);
  lab_.trace("user", "changes the budget ", ToString(name), ": ", kubernetes::WriteJson(spec));
  cluster_.Patch(
      Budgets(), name, "",
      {{"metadata", {{"generation", WholeAt(*budget, {"metadata", "generation"}) + 1}}}, {"spec", spec}});
}

// In its own time: until then its word is older than the pods.
void BudgetKeeper::LookSoon(const std::string& space) {
  if (!looks_soon_.insert(space).second) return;
  lab_.timeline.After(lab_.random.Between(5ms, lab_.random.Chance(0.8) ? Duration(200ms) : Duration(3s)),
                      [this, space] {
                        looks_soon_.erase(space);
                        Look(space);
                      });
}

void BudgetKeeper::Look(const std::string& space) {
  for (const auto& [name, budget] : FakeStore::Objects(cluster_.All(Budgets().plural))) {
    if (name.space != space) continue;
    int64_t covered = 0, ready = 0;
    for (const auto& [pod_name, pod] : cluster_.All("pods")) {
      if (!CoversApp(*budget, *pod)) continue;
      ++covered;
      ready += IsPodReady(*pod) && !IsDeleting(*pod);
    }
    const int64_t most_away = WholeAt(*budget, {"spec", "maxUnavailable"}, -1);
    const int64_t needed =
        most_away >= 0 ? covered - most_away : WholeAt(*budget, {"spec", "minAvailable"}, 0);
    const int64_t lets_go = std::max<int64_t>(ready - needed, 0);
    const int64_t generation = WholeAt(*budget, {"metadata", "generation"});
    if (WholeAt(*budget, {"status", "disruptionsAllowed"}, -1) == lets_go &&
        WholeAt(*budget, {"status", "expectedPods"}, -1) == covered &&
        WholeAt(*budget, {"status", "observedGeneration"}, -1) == generation)
      continue;
    lab_.trace("budgets", ToString(name), " lets ", lets_go, " go of ", covered);
    cluster_.Patch(
        Budgets(), name, UidOf(*budget),
        {{"status",
          {{"disruptionsAllowed", lets_go}, {"expectedPods", covered}, {"observedGeneration", generation}}}});
  }
}

}  // namespace siding::simulation::pods
