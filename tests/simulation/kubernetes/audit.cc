#include "tests/simulation/kubernetes/audit.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/simulation/kubernetes/kubelets.h"

namespace siding::simulation::pods {

using kubernetes::TextAt;

namespace {

bool Asks(const Json& pod) { return !Asked(pod, "preemptible").empty() || !Asked(pod, "start-by").empty(); }

std::string TaintOf(const Json& node) {
  for (const Json& taint : kubernetes::ListAt(node, {"spec", "taints"})) {
    if (TextAt(taint, {"key"}) == "siding.dev/kept-for") return TextAt(taint, {"value"});
  }
  return "";
}

// What siding may not change of it.
Json OthersOf(Json object) {
  Json& metadata = object["metadata"];
  metadata.erase("resourceVersion");
  if (metadata.contains("annotations")) {
    for (const char* mark : {"job", "starts", "seal", "status"})
      metadata["annotations"].erase(absl::StrCat("siding.dev/", mark));
  }
  const auto leave_out = [&](const char* list, const char* key, const std::string& value) {
    if (!object["spec"].contains(list)) return;
    Json left = Json::array();
    for (const Json& one : object["spec"][list])
      if (TextAt(one, {key}) != value) left.push_back(one);
    object["spec"].erase(list);
    if (!left.empty()) object["spec"][list] = std::move(left);
  };
  leave_out("taints", "key", "siding.dev/kept-for");
  leave_out("tolerations", "key", "siding.dev/kept-for");
  leave_out("schedulingGates", "name", "siding.dev/wait");
  object["spec"].erase("nodeSelector");
  return object;
}

bool HasItsGate(const Json& pod) { return !kubernetes::ListAt(pod, {"spec", "schedulingGates"}).empty(); }

}  // namespace

HttpResponse Audit::Ask(const HttpRequest& request, const Caller& caller) {
  if (request.method == HttpMethod::kGet) return cluster_.Ask(request);
  const std::string& path = request.path;
  const auto complain = [&](const std::string& what) {
    lab_.trace.Violate(absl::StrCat("siding ", what, ": ", ToString(request.method), " ", path));
  };
  const bool of_pod = absl::StrContains(path, "/pods/"), of_node = absl::StrContains(path, "/nodes/");
  ObjectName name;
  FakeStore::Value before;
  if (of_pod) {
    std::string rest = path.substr(std::string("/api/v1/namespaces/").size());
    name.space = rest.substr(0, rest.find('/'));
    rest = rest.substr(rest.find("/pods/") + 6);
    name.name = rest.substr(0, rest.find('/'));
    before = cluster_.Find("pods", name);
  } else if (of_node) {
    name.name = path.substr(path.rfind('/') + 1);
    before = cluster_.Find("nodes", name);
  }
  if (request.method == HttpMethod::kDelete && !of_pod) complain("deletes");
  const bool evicts = absl::EndsWith(path, "/eviction");
  const bool only_asks =
      evicts &&
      !kubernetes::ListAt(*kubernetes::ParseJson(request.body), {"deleteOptions", "dryRun"}).empty();
  const HttpResponse response = cluster_.Ask(request);
  if (before != nullptr && evicts && !only_asks && response.code == 429) kept_.insert(UidOf(*before));
  if (before == nullptr || response.code >= 300) return response;
  // Servers do not look at a binding's uid: another pod of this name may have come while it was on its way.
  if (absl::EndsWith(path, "/binding") &&
      TextAt(*kubernetes::ParseJson(request.body), {"metadata", "uid"}) != UidOf(*before)) {
    lab_.trace("cluster", ToString(name), " is bound, which has come in the place of the one that was meant");
    return response;
  }
  if (only_asks) {
    if (on_may_go) on_may_go(*before);
  } else if (request.method == HttpMethod::kDelete) {
    CheckDeleted(*before, *kubernetes::ParseJson(request.body));
  } else if (evicts) {
    CheckEvicted(*before, *kubernetes::ParseJson(request.body));
    on_evicted(*before, caller);
  } else if (absl::EndsWith(path, "/binding")) {
    CheckBound(*before, TextAt(*kubernetes::ParseJson(request.body), {"target", "name"}));
  } else if (request.method == HttpMethod::kPatch && of_pod) {
    CheckPodPatched(*before, *kubernetes::ParseJson(response.body));
  } else if (request.method == HttpMethod::kPatch && of_node) {
    CheckNodePatched(*before, *kubernetes::ParseJson(response.body));
  } else {
    complain("does what it never has to");
  }
  return response;
}

void Audit::OnEvent(const Event& event) {
  const auto* moved = std::get_if<JobMoved>(&event.body);
  if (moved != nullptr && moved->event == JobEvent::kOrderKill)
    to_be_ended_[event.job.value()] = lab_.timeline.Now();
}

void Audit::OnNumbersLost() { numbers_lost_ = true; }

int64_t Audit::NumberOf(const Json& pod) const {
  const auto number = numbered_.find(UidOf(pod));
  return number == numbered_.end() ? 0 : number->second.job;
}

void Audit::CheckEvicted(const Json& pod, const Json& body) {
  const std::string name = TextAt(pod, {"metadata", "name"});
  lab_.trace("cluster", name, " (", UidOf(pod), ") is evicted, of job ", NumberOf(pod));
  if (!why_not_evicted && Asked(pod, "preemptible").empty())
    return lab_.trace.Violate(name + " is evicted, and has not said that it may be");
  const auto numbered = numbered_.find(UidOf(pod));
  if (numbered == numbered_.end())
    return lab_.trace.Violate(name + " is evicted, and siding has never given it a number");
  if (why_not_evicted) {
    const bool at_once = kubernetes::WholeAt(body, {"deleteOptions", "gracePeriodSeconds"}, 1) == 0;
    const std::string why = why_not_evicted(pod, at_once);
    if (!why.empty())
      lab_.trace.Violate(absl::StrCat(name, " is evicted", at_once ? " at once" : "", ", and ", why));
    return;
  }
  const auto ordered = to_be_ended_.find(numbered->second.job);
  if (ordered == to_be_ended_.end() || ordered->second < numbered->second.at)
    lab_.trace.Violate(
        absl::StrCat(name, " is evicted, and nobody wants job ", numbered->second.job, " to end"));
}

// Which kubectl's users may do at any time, and siding only where a pod would stand frozen otherwise.
void Audit::CheckDeleted(const Json& pod, const Json& options) {
  const std::string name = TextAt(pod, {"metadata", "name"});
  lab_.trace("cluster", name, " (", UidOf(pod), ") is deleted, of job ", NumberOf(pod));
  if (TextAt(options, {"preconditions", "uid"}) != UidOf(pod))
    lab_.trace.Violate(name + " is deleted, and another may have been meant");
  if (!kept_.contains(UidOf(pod))) lab_.trace.Violate(name + " is deleted, and no budget has kept it");
  const std::string why = why_not_deleted ? why_not_deleted(pod) : "no pod is saved here";
  if (!why.empty()) lab_.trace.Violate(absl::StrCat(name, " is deleted, and ", why));
}

void Audit::CheckBound(const Json& pod, const std::string& node) {
  const std::string name = TextAt(pod, {"metadata", "name"});
  lab_.trace("cluster", name, " is bound to ", node);
  if (Asked(pod, "start-by").empty() || TextAt(pod, {"spec", "schedulerName"}) != "siding")
    return lab_.trace.Violate(name + " is bound, and has not asked siding for a node");
  const FakeStore::Value there = cluster_.Find("nodes", {"", node});
  if (there == nullptr) return;  // it has just gone
  const std::string kept_for = TaintOf(*there);
  const auto job = recorded_.jobs.find(JobId(NumberOf(pod)));
  // Several that were planned for may share a node, and the taint names one of them.
  const bool is_planned =
      job != recorded_.jobs.end() &&
      std::any_of(job->second.plans.begin(), job->second.plans.end(), [&](const Plan& plan) {
        return std::find(plan.nodes.begin(), plan.nodes.end(), NodeId(node)) != plan.nodes.end();
      });
  if (!is_planned)
    lab_.trace.Violate(absl::StrCat(name, " of job ", NumberOf(pod), " is bound to ", node,
                                    ", which was not planned for it"));
  if (!kept_for.empty() && kept_for != absl::StrCat(NumberOf(pod)) && !is_planned)
    lab_.trace.Violate(absl::StrCat(name, " of job ", NumberOf(pod), " is bound to ", node,
                                    ", which is kept for job ", kept_for));
  bound_.insert(UidOf(pod));
}

void Audit::OnTurnedDown(const Json& pod) {
  if (bound_.contains(UidOf(pod)))
    lab_.trace.Violate(TextAt(pod, {"metadata", "name"}) + " was bound to a node that has no room for it");
}

void Audit::CheckPodPatched(const Json& before, const Json& after) {
  const std::string name = TextAt(before, {"metadata", "name"});
  // What it has asked before may be under way.
  if (!Asks(before) && !numbered_.contains(UidOf(before)))
    return lab_.trace.Violate(name + " has asked nothing, and is patched");
  if (OthersOf(before) != OthersOf(after))
    return lab_.trace.Violate(
        absl::StrCat(name, ": siding changes what is not its own: ", kubernetes::WriteJson(OthersOf(before)),
                     " becomes ", kubernetes::WriteJson(OthersOf(after))));
  if (HasItsGate(before) && !HasItsGate(after) && Asked(before, "start-by").empty())
    lab_.trace.Violate(name + " is let go, and has no deadline");
  const std::string seal = Asked(after, "seal");
  if (seal == Asked(before, "seal")) return;
  int64_t number = 0;
  if (!absl::SimpleAtoi(Asked(after, "job"), &number))
    return lab_.trace.Violate(name + " gets a seal and no number");
  CheckNumber(after, number);
}

void Audit::CheckNumber(const Json& pod, int64_t number) {
  const std::string uid = UidOf(pod), gang = Asked(pod, "gang");
  const std::string holder = gang.empty() ? uid : "gang " + gang;
  numbered_[uid] = {number, lab_.timeline.Now()};
  const auto [held, is_new] = holders_.emplace(number, holder);
  bool is_taken = !is_new && held->second != holder;
  if (is_taken && is_heir && is_heir(pod, number)) {
    is_taken = false;
    held->second = holder;
  }
  if (is_taken && numbers_lost_) {
    is_taken = false;
    for (const auto& [name, other] : cluster_.All("pods"))
      is_taken |= UidOf(*other) != uid && !IsOver(*other) && NumberOf(*other) == number &&
                  (gang.empty() || Asked(*other, "gang") != gang);
    if (!is_taken) held->second = holder;
  }
  if (is_taken)
    lab_.trace.Violate(absl::StrCat(TextAt(pod, {"metadata", "name"}), " gets number ", number, ", which ",
                                    held->second, " has or had"));
}

void Audit::CheckNodePatched(const Json& before, const Json& after) {
  lab_.trace("cluster", TextAt(before, {"metadata", "name"}), " is kept for ", TaintOf(after));
  if (OthersOf(before) != OthersOf(after))
    lab_.trace.Violate(TextAt(before, {"metadata", "name"}) + ": siding changes what is not its own");
}

std::string Audit::Leftover() {
  for (const auto& [name, node] : cluster_.All("nodes")) {
    if (!TaintOf(*node).empty())
      return absl::StrCat("node ", name.name, " is still kept for job ", TaintOf(*node));
  }
  for (const auto& [name, pod] : cluster_.All("pods")) {
    if (IsOver(*pod)) continue;
    if (!Asked(*pod, "status").empty())
      return absl::StrCat(ToString(name), " is still marked: ", Asked(*pod, "status"));
    if (HasItsGate(*pod)) return ToString(name) + " still has its gate";
  }
  return "";
}

}  // namespace siding::simulation::pods
