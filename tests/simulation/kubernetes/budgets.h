// Disruption budgets: the controller that counts for them, and users who change them.
#pragma once

#include <set>
#include <string>

#include "tests/simulation/kubernetes/cluster.h"

namespace siding::simulation::pods {

// Not thread-safe.
class BudgetKeeper {
 public:
  BudgetKeeper(Lab& lab, Cluster& cluster) : lab_(lab), cluster_(cluster) {}
  void OnChange(const FakeStore::Event& event);
  // Over the pods of this label there. One that is there already stays.
  void Make(const std::string& space, const std::string& app);
  // A user asks for more or less of one of them, or deletes it.
  void ChangeOne();
  // Nobody of this label is let go any more.
  void Forbid(const std::string& space, const std::string& app);

 private:
  Json Draw();
  void Change(const ObjectName& name, Json spec);
  void LookSoon(const std::string& space);
  void Look(const std::string& space);

  Lab& lab_;
  Cluster& cluster_;
  std::set<std::string> looks_soon_;  // namespaces
};

// Its selector is of the label `app`.
bool CoversApp(const Json& budget, const Json& pod);
bool IsPodReady(const Json& pod);

}  // namespace siding::simulation::pods
