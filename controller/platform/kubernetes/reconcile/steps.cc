#include "controller/platform/kubernetes/reconcile/steps.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/platform/kubernetes/objects/marks.h"
#include "controller/platform/kubernetes/objects/saving.h"

namespace siding::kubernetes {
namespace {

constexpr char kHostnameLabel[] = "kubernetes.io/hostname";
constexpr char kNoSchedule[] = "NoSchedule";

// Its pods hold the room themselves. Only when their kubelets run them: what binds other pods may see that
// the taint is gone before it sees who has the node, and a kubelet turns down the one that comes second. A
// gang that lacks a pod, or of which one is over, may have another that needs its node. And one that ends
// needs no more than it has. `late`: it has had a node for so long that all know it, though it may never run.
bool HoldsItsRoom(const JobTable& table, JobId job, size_t nodes, bool late) {
  const std::vector<const Pod*> pods = table.PodsThatCount(job);
  if (pods.empty()) return true;  // they are gone, and the engine is about to know it
  return pods.size() >= nodes && std::all_of(pods.begin(), pods.end(), [late](const Pod* pod) {
           return IsOver(*pod) || (HoldsNode(*pod) && (late || pod->phase == PodPhase::kRunning));
         });
}

// The jobs for which nodes are kept; a node that several want is the first one's.
std::map<std::string, JobId> KeptNodes(const DesiredState& desired, const JobTable& table, Time now) {
  std::map<std::string, JobId> kept;
  for (const auto& [job, wanted] : desired.kept) {
    const bool late = wanted.until != Time{} && now > wanted.until;
    if (HoldsItsRoom(table, job, wanted.nodes.size(), late)) continue;
    for (const NodeId& node : wanted.nodes) kept.emplace(node.value(), job);
  }
  return kept;
}

Step PatchStep(std::string target, std::string action, const Resource& resource, const ObjectName& name,
               Json body) {
  return {std::move(target), std::move(action),
          Patch{resource, name, std::make_shared<const Json>(std::move(body))}};
}

// Nobody else's pods come to this node any more. A taint of an earlier job's may be gone by now, and one that
// siding has taken off since is.
bool IsSeenKept(const Node& node, const std::map<std::string, JobId>& kept) {
  if (node.outdated) return false;
  const auto job = kept.find(node.object.name.name);
  return job != kept.end() && std::any_of(node.taints.begin(), node.taints.end(), [&](const Taint& taint) {
           return taint.key == kKeptTaint && taint.value == absl::StrCat(job->second.value());
         });
}

// Others' taints stay as they are, with all their fields. `job`: null, it is kept for nobody.
void AddNodeStep(const Node& node, const JobId* job, std::vector<Step>& steps) {
  Json taints = Json::array();
  std::vector<std::string> ours;
  for (const Json& taint : ListAt(*node.object.json, {"spec", "taints"})) {
    if (TextAt(taint, {"key"}) == kKeptTaint) {
      ours.push_back(TextAt(taint, {"value"}));
    } else {
      taints.push_back(taint);
    }
  }
  std::vector<std::string> wanted;
  if (job != nullptr) wanted.push_back(absl::StrCat(job->value()));
  if (ours == wanted) return;
  if (job != nullptr)
    taints.push_back({{"key", kKeptTaint}, {"value", wanted.front()}, {"effect", kNoSchedule}});
  Json body = {{"metadata", {{"resourceVersion", node.object.version}}},
               {"spec", {{"taints", std::move(taints)}}}};
  const std::string& name = node.object.name.name;
  steps.push_back(PatchStep("node " + name,
                            job != nullptr ? "kept for job " + wanted.front() : "kept no more", Nodes(),
                            node.object.name, std::move(body)));
}

std::string NameOf(const Pod& pod) { return "pod " + ToString(pod.name); }

Step LetGo(const Pod& pod, const Node& node) {
  Json gates = Json::array();
  for (const std::string& gate : pod.gates) {
    if (gate != kGate) gates.push_back({{"name", gate}});
  }
  Json tolerations = ListAt(*pod.json, {"spec", "tolerations"});
  tolerations.push_back({{"key", kKeptTaint}, {"operator", "Exists"}, {"effect", kNoSchedule}});
  const auto hostname = node.labels.find(kHostnameLabel);
  const std::string& name = hostname == node.labels.end() ? node.object.name.name : hostname->second;
  Json body = {{"metadata", {{"resourceVersion", pod.version}}},
               {"spec",
                {{"schedulingGates", std::move(gates)},
                 {"nodeSelector", {{kHostnameLabel, name}}},
                 {"tolerations", std::move(tolerations)}}}};
  return PatchStep(NameOf(pod), "let go to " + node.object.name.name, Pods(), pod.name, std::move(body));
}

using Promises = std::map<std::string, Promised>;  // by node

void Promise(const std::string& node, const Pod& pod, Promises& promises) {
  Promised& promised = promises[node];
  promised.requests = promised.requests + pod.requests;
  ++promised.pods;
}

// The cluster is to place it, and has not yet.
bool IsLetGo(const Pod& pod) {
  return pod.node.empty() && !HasGate(pod) && pod.scheduler != kScheduler &&
         pod.placement.selector.contains(kHostnameLabel);
}

// What pods are to have that were let go.
Promises PromisedAlready(const DesiredState& desired, const JobTable& table) {
  Promises promises;
  for (const auto& [job, kept] : desired.kept) {
    const std::vector<const Pod*> pods = table.PodsOf(job);
    if (pods.size() != kept.nodes.size()) continue;
    for (size_t rank = 0; rank < pods.size(); ++rank) {
      if (IsLetGo(*pods[rank])) Promise(kept.nodes[rank].value(), *pods[rank], promises);
    }
  }
  return promises;
}

// Those that have no node yet get theirs, by rank, all of them or none.
void AddPlacement(const JobTable& table, const std::map<std::string, JobId>& kept,
                  const std::vector<const Pod*>& pods, const std::vector<NodeId>& nodes, Promises& promises,
                  std::vector<Step>& steps) {
  if (pods.size() != nodes.size()) return;
  std::vector<Step> placed;
  Promises with = promises;
  for (size_t rank = 0; rank < pods.size(); ++rank) {
    const Pod& pod = *pods[rank];
    if (!pod.node.empty() || IsLetGo(pod)) continue;
    const auto node = table.nodes().find(nodes[rank].value());
    if (node == table.nodes().end() || !IsSeenKept(node->second, kept) || !table.MayBeOn(node->first, pod) ||
        !table.HasRoom(node->first, pod, with[node->first]))
      return;
    if (HasGate(pod)) {
      placed.push_back(LetGo(pod, node->second));
      Promise(node->first, pod, with);
    } else if (pod.scheduler == kScheduler) {
      placed.push_back({NameOf(pod), "bound to " + node->first,
                        Binding{pod.name, pod.uid, node->first, pod.requests, node->second.allocatable,
                                node->second.most_pods}});
      Promise(node->first, pod, with);
    }
  }
  promises = std::move(with);
  std::move(placed.begin(), placed.end(), std::back_inserter(steps));
}

// Its Job is not to take a pod for failed whose work goes on elsewhere: that comes first.
void AddEviction(const JobTable& table, const std::map<std::string, JobId>& kept, const Eviction& eviction,
                 std::vector<Step>& steps) {
  const std::string target = "pod " + ToString(eviction.pod);
  if (eviction.only_ask) return steps.push_back({target, "asked whether it may be evicted", eviction});
  Step evict{target, absl::StrCat("evicted, of job ", eviction.job.value()), eviction};
  const Pod* pod = table.Find(eviction.pod);
  if (pod != nullptr && pod->uid == eviction.uid) {
    const auto node = table.nodes().find(pod->node);
    if (node != table.nodes().end() && kept.contains(pod->node) && !IsSeenKept(node->second, kept)) return;
    if (std::optional<Json> patch = eviction.at_once ? PatchToUncount(*pod) : std::nullopt) {
      steps.push_back(PatchStep(target, "not to count as failed", Pods(), pod->name, *std::move(patch)));
      evict.after_last = true;
    }
    // It has as little time already as it is to have.
    if (pod->deleting && (!eviction.at_once || EndsAtOnce(*pod))) return;
  }
  steps.push_back(std::move(evict));
}

void AddStatus(const Pod& pod, const std::string& why, std::vector<Step>& steps) {
  if (SaidBy(pod, kStatusMark) == why) return;
  const Json text = why.empty() ? Json() : Json(why);
  Json body = {
      {"metadata", {{"uid", pod.uid}, {"annotations", {{absl::StrCat(kPrefix, kStatusMark), text}}}}}};
  steps.push_back(PatchStep(NameOf(pod), why.empty() ? "no longer marked" : "marked: " + why, Pods(),
                            pod.name, std::move(body)));
}

absl::Status CheckRoom(ApiClient& client, const Binding& binding) {
  SIDING_ASSIGN_OR_RETURN(const ListPage page,
                          client.List(Pods(), {.fields = absl::StrCat("spec.nodeName=", binding.node)}));
  Amounts taken = binding.requests;
  int pods = 0;
  for (const Object& object : page.items) {
    const Pod pod = PodFrom(object);
    if (!HoldsNode(pod) || pod.uid == binding.uid) continue;
    taken = taken + pod.requests;
    ++pods;
  }
  if (pods < binding.most_pods && ToResources(binding.allocatable).Covers(ToResources(taken)))
    return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("node ", binding.node, " has no room any more"));
}

}  // namespace

std::vector<Step> StepsTowards(const DesiredState& desired, const std::vector<Eviction>& unwanted,
                               const JobTable& table, Time now) {
  std::vector<Step> steps;
  const std::map<std::string, JobId> kept = KeptNodes(desired, table, now);
  for (const auto& [name, node] : table.nodes()) {
    const auto job = kept.find(name);
    AddNodeStep(node, job == kept.end() ? nullptr : &job->second, steps);
  }
  Promises promises = PromisedAlready(desired, table);
  for (const auto& [job, wanted] : desired.jobs) {
    // Nodes that are not kept for it may be another's by the time that it comes.
    if (desired.kept.contains(job))
      AddPlacement(table, kept, table.PodsOf(job), wanted.nodes, promises, steps);
  }
  for (const Eviction& eviction : unwanted) AddEviction(table, kept, eviction, steps);
  // Last: they only tell people.
  for (const JobId job : table.Jobs()) {
    const auto wanted = desired.jobs.find(job);
    for (const Pod* pod : table.PodsOf(job))
      AddStatus(*pod, wanted == desired.jobs.end() ? "" : wanted->second.why, steps);
  }
  return steps;
}

absl::Status Apply(ApiClient& client, const Step& step) {
  if (const auto* patch = std::get_if<Patch>(&step.call))
    return client.MergePatch(patch->resource, patch->name, *patch->body).status();
  const auto& binding = std::get<Binding>(step.call);
  SIDING_RETURN_IF_ERROR(CheckRoom(client, binding));
  return client.Bind(binding.pod, binding.uid, binding.node).status();
}

bool IsOverTaken(const absl::Status& status) { return absl::IsAborted(status) || absl::IsNotFound(status); }

}  // namespace siding::kubernetes
