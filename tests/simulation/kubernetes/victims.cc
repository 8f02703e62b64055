#include "tests/simulation/kubernetes/victims.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "controller/engine/state/predicates.h"
#include "tests/simulation/kubernetes/budgets.h"

namespace siding::simulation::pods {

using kubernetes::TextAt;

namespace {

bool IsKept(const Json& node) {
  const Json& taints = kubernetes::ListAt(node, {"spec", "taints"});
  return std::any_of(taints.begin(), taints.end(),
                     [](const Json& taint) { return TextAt(taint, {"key"}) == "siding.dev/kept-for"; });
}

bool OrdersToLeave(const JobMoved& moved) {
  switch (moved.event) {
    case JobEvent::kOrderKill:
      return true;
    case JobEvent::kOrderSuspend:
    case JobEvent::kOrderDump:
    case JobEvent::kOrderSave:
      return !moved.keep_running;
    default:
      return false;
  }
}

bool Withdraws(const JobMoved& moved) {
  switch (moved.event) {
    case JobEvent::kThawed:
    case JobEvent::kFreezeFailed:
    case JobEvent::kDumpFailed:
    case JobEvent::kStaysFrozen:
    case JobEvent::kStartGoesOn:
    case JobEvent::kRestoreGoesOn:
      return true;
    default:
      return false;
  }
}

// Those that it has, or is to get.
const std::vector<NodeId>& NodesOf(const JobRecord& request) {
  if (HoldsNodes(request.state)) return request.nodes;
  const auto last = std::find_if(request.plans.rbegin(), request.plans.rend(),
                                 [](const Plan& plan) { return !plan.nodes.empty(); });
  return last == request.plans.rend() ? request.nodes : last->nodes;
}

}  // namespace

void Victims::OnEvent(const Event& event, const Told& known) {
  if (const auto* planned = std::get_if<RequestPlanned>(&event.body)) CheckBudgets(planned->plan, known);
  const auto* moved = std::get_if<JobMoved>(&event.body);
  if (moved == nullptr) return;
  const Time now = lab_.timeline.Now();
  if (OrdersToLeave(*moved)) {
    orders_[event.job] = {moved->request, now, std::nullopt};
  } else if (moved->event == JobEvent::kPlace) {
    orders_.erase(event.job);
  } else if (const auto order = orders_.find(event.job); order != orders_.end() && Withdraws(*moved)) {
    order->second.withdrawn = now;
  }
}

// A plan takes no more of a budget than it was last heard to let go.
void Victims::CheckBudgets(const Plan& plan, const Told& known) {
  std::set<JobId> leave;
  for (const PlanStep& step : plan.steps) {
    if (!step.early) leave.insert(step.job);
  }
  if (leave.empty()) return;
  for (const auto& [name, budget] : known.budgets) {
    const Json& json = *budget.json;
    const bool is_current = kubernetes::WholeAt(json, {"status", "observedGeneration"}) ==
                            kubernetes::WholeAt(json, {"metadata", "generation"});
    const int64_t lets_go = is_current ? kubernetes::WholeAt(json, {"status", "disruptionsAllowed"}) : 0;
    if (kubernetes::WholeAt(json, {"status", "expectedPods"}) == 0) continue;  // it has not been counted yet
    const auto takes = std::count_if(known.pods.begin(), known.pods.end(), [&](const auto& one) {
      const Json& pod = *one.second.json;
      return CoversApp(json, pod) && IsPodReady(pod) && !IsDeleting(pod) &&
             leave.contains(JobId(audit_.NumberOf(pod)));
    });
    if (takes > lets_go)
      lab_.trace.Violate(absl::StrCat("the plan of job ", plan.request.value(), " takes ", takes, " of ",
                                      ToString(name), ", which lets ", lets_go, " go"));
  }
}

void Victims::OnEvicted(const Json& pod, const Caller& caller) {
  const JobId job(audit_.NumberOf(pod));
  const auto order = orders_.find(job);
  if (order == orders_.end() || IsDeleting(pod) || !makes_progress(pod)) return;
  const std::string name = TextAt(pod, {"metadata", "name"});
  if (order->second.withdrawn && *order->second.withdrawn < caller.sent)
    return lab_.trace.Violate(
        absl::StrCat(name, " is evicted, and the order to end job ", job.value(), " has been withdrawn"));
  if (order->second.request != JobId()) CheckServes(pod, caller);
}

void Victims::CheckServes(const Json& pod, const Caller& caller) {
  const std::string name = TextAt(pod, {"metadata", "name"}), node = NodeOf(pod);
  bool for_somebody = false, waited_for = false;
  for (const auto& [id, request] : recorded_.unfinished) {
    if (request->spec.kind != JobKind::kOnDemand || !IsAlive(id, caller.told)) continue;
    const std::vector<NodeId>& nodes = NodesOf(*request);
    const bool is_its = nodes.empty() || std::find(nodes.begin(), nodes.end(), NodeId(node)) != nodes.end();
    for_somebody |= is_its;
    waited_for |= is_its && !nodes.empty() && !HoldsNodes(request->state);
  }
  if (!for_somebody) return lab_.trace.Violate(name + " is evicted for nobody");
  if (!waited_for) return;
  const auto known = caller.told.nodes.find({"", node});
  const FakeStore::Value there = cluster_.Find("nodes", {"", node});
  if (there == nullptr || known == caller.told.nodes.end() || known->second.uid != UidOf(*there)) return;
  if (!IsKept(*there))
    lab_.trace.Violate(absl::StrCat(name, " is evicted, and others may have its room on ", node));
  if (!IsKept(*known->second.json))
    lab_.trace.Violate(absl::StrCat(name, " is evicted before ", node, " was seen to be kept"));
}

// As far as the cluster has told: it has a pod that is not over.
bool Victims::IsAlive(JobId request, const Told& known) const {
  return std::any_of(known.pods.begin(), known.pods.end(), [&](const auto& one) {
    const Json& pod = *one.second.json;
    return audit_.NumberOf(pod) == request.value() && !IsOver(pod) && !IsDeleting(pod);
  });
}

}  // namespace siding::simulation::pods
