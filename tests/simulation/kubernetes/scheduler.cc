#include "tests/simulation/kubernetes/scheduler.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/simulation/kubernetes/kubelets.h"

namespace siding::simulation::pods {

using namespace std::chrono_literals;
using kubernetes::TextAt;

void Scheduler::OnChange(const FakeStore::Event& event) {
  if ((event.plural != "pods" && event.plural != "nodes") || std::exchange(looks_soon_, true)) return;
  lab_.timeline.After(lab_.random.Between(5ms, 200ms), [this] {
    looks_soon_ = false;
    Look();
  });
}

bool Scheduler::MayBeOn(const Json& pod, const std::string& name, const Json& node) const {
  for (const Json& condition : kubernetes::ListAt(node, {"status", "conditions"})) {
    if (TextAt(condition, {"type"}) == "Ready" && TextAt(condition, {"status"}) != "True") return false;
  }
  const std::string only = TextAt(pod, {"spec", "nodeSelector", "kubernetes.io/hostname"});
  if (!only.empty() && only != name) return false;
  for (const Json& taint : kubernetes::ListAt(node, {"spec", "taints"})) {
    bool tolerated = false;
    for (const Json& toleration : kubernetes::ListAt(pod, {"spec", "tolerations"}))
      tolerated |= TextAt(toleration, {"key"}) == TextAt(taint, {"key"});
    if (!tolerated) return false;
  }
  return true;
}

void Scheduler::Look() {
  std::map<std::string, int64_t> taken;
  std::vector<ObjectName> waiting;
  for (const auto& [name, pod] : cluster_.All("pods")) {
    if (IsOver(*pod)) continue;
    if (!NodeOf(*pod).empty()) {
      taken[NodeOf(*pod)] += CpuOf(*pod);
    } else if (TextAt(*pod, {"spec", "schedulerName"}) != "siding" && !IsDeleting(*pod) &&
               kubernetes::ListAt(*pod, {"spec", "schedulingGates"}).empty()) {
      waiting.push_back(name);
    }
  }
  for (const ObjectName& name : waiting) {
    const FakeStore::Value pod = cluster_.Find("pods", name);
    if (pod == nullptr || !NodeOf(*pod).empty()) continue;
    for (const auto& [node_name, node] : FakeStore::Objects(cluster_.All("nodes"))) {
      const std::string& node_text = node_name.name;
      if (!MayBeOn(*pod, node_text, *node) || taken[node_text] + CpuOf(*pod) > kCpuOfNode) continue;
      taken[node_text] += CpuOf(*pod);
      lab_.trace("scheduler", ToString(name), " to ", node_text);
      cluster_.Bind(name, node_text);
      break;
    }
  }
}

}  // namespace siding::simulation::pods
