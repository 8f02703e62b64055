// Which disruption budget is in the way of an eviction. Pure.
#pragma once

#include <string>

#include "controller/platform/kubernetes/client/json.h"
#include "controller/platform/kubernetes/fake/fake_store.h"

namespace siding::kubernetes {

// Whether labels are as a text of the form "a=b,c" asks; `simple` is set to false if it is of another form.
bool LabelsMatch(const Json& object, const std::string& selector, bool& simple);
// How many cover it; servers evict no pod that more than one covers.
int BudgetsOf(const Json& pod, const FakeStore::Objects& budgets);
// Why this pod may not be evicted; "" if it may. Budgets have matchLabels, and minAvailable or maxUnavailable
// as whole numbers.
std::string BudgetAgainst(const Json& pod, const FakeStore::Objects& pods, const FakeStore::Objects& budgets);

}  // namespace siding::kubernetes
