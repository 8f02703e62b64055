#include "tests/simulation/kubernetes/kubelets.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace siding::simulation::pods {

using namespace std::chrono_literals;
using kubernetes::TextAt;

namespace {

Duration WorkOf(const Json& pod) {
  int64_t micros = 0;
  for (const Json& container : kubernetes::ListAt(pod, {"spec", "containers"})) {
    for (const Json& arg : kubernetes::ListAt(container, {"args"}))
      if (!absl::SimpleAtoi(arg.get<std::string>(), &micros)) return Duration(0);
  }
  return Duration(micros);
}

Json ReadyIs(bool ready, const std::string& reason) {
  return Json::array({{{"type", "Ready"}, {"status", ready ? "True" : "Unknown"}, {"reason", reason}}});
}

// The status of a pod that has ended, which no kubelet calls ready.
Json Ended(const std::string& phase) {
  return {{"phase", phase}, {"conditions", Json::array({{{"type", "Ready"}, {"status", "False"}}})}};
}

}  // namespace

Kubelets::Kubelets(Lab& lab, Cluster& cluster, Containers& containers)
    : lab_(lab), cluster_(cluster), containers_(containers) {
  containers_.on_made = [this](const Container& container) { OnMade(container); };
  containers_.on_done = [this](const Container& container) { OnExit(container, "Succeeded"); };
  containers_.on_killed = [this](const Container& container) { OnExit(container, "Failed"); };
}

void Kubelets::Add(const std::string& node) {
  machines_[node] = {};
  Post(node);
}

void Kubelets::Post(const std::string& name) {
  ++names_[name];
  const Json node = {
      {"metadata", {{"name", name}, {"labels", {{"kubernetes.io/hostname", name}}}}},
      {"spec", Json::object()},
      {"status",
       {{"allocatable", {{"cpu", absl::StrCat(kCpuOfNode, "m")}, {"memory", "8Gi"}, {"pods", "20"}}},
        {"conditions", ReadyIs(true, "KubeletReady")}}}};
  cluster_.Create(kubernetes::Nodes(), "", node);
}

bool Kubelets::IsWell(const std::string& node) const {
  const auto found = machines_.find(node);
  return found != machines_.end() && found->second.there && found->second.heard;
}

// What a kubelet does happens in its time, or when it can be heard again; after a reboot it is not done.
void Kubelets::After(const std::string& node, Duration delay, std::function<void()> what) {
  lab_.timeline.After(delay, [this, node, boots = machines_[node].boots, what = std::move(what)] {
    Machine& machine = machines_[node];
    if (machine.boots != boots) return;
    if (machine.heard)
      what();
    else
      machine.when_heard.push_back(what);
  });
}

FakeStore::Value Kubelets::Look(const ObjectName& pod, const std::string& uid) {
  FakeStore::Value found = cluster_.Find("pods", pod);
  return found != nullptr && UidOf(*found) == uid ? found : nullptr;
}

void Kubelets::OnChange(const FakeStore::Event& event) {
  if (event.plural != "pods") return;
  if (event.after == nullptr) {
    const std::string uid = UidOf(*event.before);
    ending_.erase(uid);
    // Somebody took it away without asking the kubelet: it ends what it finds.
    if (const auto machine = machines_.find(NodeOf(*event.before)); machine != machines_.end()) {
      machine->second.taken_in.erase(uid);
      machine->second.runs.erase(uid);
      if (containers_.Find(uid) != nullptr)
        After(machine->first, lab_.random.Between(10ms, 1s), [this, uid] { containers_.End(uid); });
    }
    return;
  }
  const Json& pod = *event.after;
  const std::string uid = UidOf(pod), node = NodeOf(pod);
  if (node.empty() || !machines_.contains(node)) return;
  const bool was_bound = event.before != nullptr && !NodeOf(*event.before).empty();
  if (!was_bound)
    After(node, lab_.random.Between(20ms, 300ms),
          [this, name = event.name, uid, node] { TakeIn(name, uid, node); });
  if (!IsDeleting(pod) || !ending_.insert(uid).second) return;
  const int64_t grace = kubernetes::WholeAt(pod, {"metadata", "deletionGracePeriodSeconds"}, 30);
  // Some heed SIGTERM at once, others are killed when their grace is over.
  Random& random = lab_.random;
  const Duration least = 20ms, most = std::chrono::seconds(grace);
  const Container* const container = containers_.Find(uid);
  const bool heeds_nothing = container != nullptr && container->pid != 0 && !container->since;
  After(node, heeds_nothing || random.Chance(0.3) ? most : random.Between(least, most),
        [this, name = event.name, uid, node] { EndPod(name, uid, node); });
}

void Kubelets::SetPhase(const ObjectName& name, const std::string& uid, Json status) {
  cluster_.Patch(kubernetes::Pods(), name, uid, {{"status", std::move(status)}}, "");
}

void Kubelets::TakeIn(const ObjectName& name, const std::string& uid, const std::string& node) {
  const FakeStore::Value pod = Look(name, uid);
  if (pod == nullptr || IsDeleting(*pod) || IsOver(*pod)) return;
  Machine& machine = machines_[node];
  if (machine.taken_in.contains(uid)) return;
  int64_t taken = 0;
  for (const auto& [other, value] : cluster_.All("pods")) {
    if (machine.taken_in.contains(UidOf(*value)) && !IsOver(*value)) taken += CpuOf(*value);
  }
  if (taken + CpuOf(*pod) > kCpuOfNode) {
    lab_.trace(node, "turns ", ToString(name), " down: it has no room");
    on_turned_down(*pod);
    return SetPhase(name, uid, {{"phase", "Failed"}, {"reason", "OutOfcpu"}});
  }
  machine.taken_in.insert(uid);
  After(node, lab_.random.Between(20ms, 500ms), [this, name, uid, node] { StartPod(name, uid, node); });
}

void Kubelets::StartPod(const ObjectName& name, const std::string& uid, const std::string& node) {
  const FakeStore::Value pod = Look(name, uid);
  if (pod == nullptr || IsDeleting(*pod) || IsOver(*pod)) return;
  if (!machines_[node].runs.insert(uid).second) return;
  lab_.trace(node, "starts ", ToString(name));
  if (IsOfRuntimeClass(*pod)) return containers_.Begin(name, uid, node, WorkOf(*pod));
  SetRunning(name, uid);
  After(node, WorkOf(*pod), [this, name, uid, node] { Succeed(name, uid, node); });
}

void Kubelets::OnMade(const Container& container) {
  machines_[container.node].made.insert(container.uid);
  After(container.node, lab_.random.Between(5ms, 500ms), [this, name = container.pod, uid = container.uid] {
    const FakeStore::Value pod = Look(name, uid);
    if (pod != nullptr && !IsOver(*pod)) SetRunning(name, uid);
  });
}

void Kubelets::OnExit(const Container& container, const char* phase) {
  After(container.node, lab_.random.Between(5ms, 500ms),
        [this, name = container.pod, uid = container.uid, node = container.node, phase = std::string(phase)] {
          if (phase == "Succeeded") return Succeed(name, uid, node);
          const FakeStore::Value pod = Look(name, uid);
          if (pod == nullptr || IsOver(*pod)) return;
          machines_[node].runs.erase(uid);
          lab_.trace(node, ToString(name), " has ended");
          SetPhase(name, uid, Ended("Failed"));
        });
}

void Kubelets::SetRunning(const ObjectName& name, const std::string& uid) {
  const Json running = {{"running", {{"startedAt", FormatTime(lab_.timeline.Now())}}}};
  SetPhase(name, uid,
           {{"phase", "Running"},
            {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})},
            {"containerStatuses", Json::array({{{"name", "main"}, {"state", running}}})}});
}

void Kubelets::Succeed(const ObjectName& name, const std::string& uid, const std::string& node) {
  const FakeStore::Value now = Look(name, uid);
  // One that is told to end does not come to the end of its work.
  const bool told_to_end = now != nullptr && IsDeleting(*now) && !IsOfRuntimeClass(*now);
  if (now == nullptr || told_to_end || IsOver(*now) || !machines_[node].runs.erase(uid)) return;
  lab_.trace(node, ToString(name), " has done its work");
  SetPhase(name, uid, Ended("Succeeded"));
  on_done(*now);
}

void Kubelets::EndPod(const ObjectName& name, const std::string& uid, const std::string& node) {
  const FakeStore::Value pod = Look(name, uid);
  if (pod == nullptr) return;
  const bool ran = machines_[node].runs.erase(uid) > 0;
  machines_[node].taken_in.erase(uid);
  containers_.End(uid);
  if (!ran || IsOver(*pod) || lab_.random.Chance(0.5)) return Remove(name, uid, node);
  SetPhase(name, uid, Ended("Failed"));
  After(node, lab_.random.Between(5ms, 500ms), [this, name, uid, node] { Remove(name, uid, node); });
}

void Kubelets::Remove(const ObjectName& name, const std::string& uid, const std::string& node) {
  lab_.trace(node, ToString(name), " is gone");
  cluster_.Delete(kubernetes::Pods(), name, uid, 0);
}

void Kubelets::LoseNode(const std::string& node, bool power) {
  Machine& machine = machines_[node];
  if (!machine.there || !machine.heard) return;
  lab_.trace(node, power ? "loses power" : "is cut off");
  machine.heard = false;
  if (power) {
    ++machine.boots;
    machine.runs.clear();
    machine.when_heard.clear();
    containers_.EndAllOn(node);
  }
  on_lost(node, power, false);
  // What the node controller does: it notices after a while, and later deletes what was there.
  lab_.timeline.After(lab_.random.Between(1s, 20s), [this, node] {
    if (machines_[node].heard || !machines_[node].there) return;
    lab_.trace(node, "is said not to be ready");
    cluster_.Patch(kubernetes::Nodes(), {"", node}, "",
                   {{"status", {{"conditions", ReadyIs(false, "NodeStatusUnknown")}}}});
  });
  lab_.timeline.After(lab_.random.Between(30s, 90s), [this, node] {
    if (machines_[node].heard || !machines_[node].there) return;
    for (const auto& [name, pod] : FakeStore::Objects(cluster_.All("pods"))) {
      if (NodeOf(*pod) == node && !IsDeleting(*pod) && !IsOver(*pod))
        cluster_.Delete(kubernetes::Pods(), name, UidOf(*pod));
    }
  });
}

// Of earlier versions the status comes first, and the processes end within their grace.
bool Kubelets::Disrupt(const ObjectName& name, const std::string& reason) {
  const FakeStore::Value pod = cluster_.Find("pods", name);
  if (pod == nullptr || IsOver(*pod) || !IsWell(NodeOf(*pod))) return false;
  const std::string uid = UidOf(*pod), node = NodeOf(*pod);
  if (!machines_[node].taken_in.contains(uid)) return false;
  lab_.trace(node, "ends ", ToString(name), ": ", reason);
  const auto say = [this, name, uid, reason] {
    const FakeStore::Value now = Look(name, uid);
    if (now == nullptr || IsOver(*now)) return;
    Json status = Ended("Failed");
    // Of later versions some say no more than this.
    if (reason == "Evicted" && lab_.random.Chance(0.3)) {
      status["conditions"].push_back({{"type", "DisruptionTarget"}, {"status", "True"}});
    } else {
      status["reason"] = reason;
    }
    SetPhase(name, uid, std::move(status));
  };
  const auto end = [this, uid, node] {
    machines_[node].runs.erase(uid);
    containers_.End(uid);
  };
  if (lab_.random.Chance(0.5)) {
    say();
    After(node, lab_.random.Between(5ms, 10s), end);
  } else {
    end();
    After(node, lab_.random.Between(5ms, 500ms), say);
  }
  return true;
}

bool Kubelets::Crash(const ObjectName& name) {
  const FakeStore::Value pod = cluster_.Find("pods", name);
  if (pod == nullptr || IsOver(*pod) || IsDeleting(*pod) || !IsWell(NodeOf(*pod))) return false;
  const std::string uid = UidOf(*pod), node = NodeOf(*pod);
  if (!machines_[node].runs.contains(uid)) return false;
  const Container* const container = containers_.Find(uid);
  if (IsOfRuntimeClass(*pod) && (container == nullptr || container->pid == 0 || container->exited))
    return false;
  lab_.trace(node, ToString(name), " fails");
  if (container != nullptr) {
    containers_.Kill(uid);
  } else {
    machines_[node].runs.erase(uid);
    SetPhase(name, uid, Ended("Failed"));
  }
  return true;
}

void Kubelets::ShutDown(const std::string& node) {
  if (!IsWell(node)) return;
  lab_.trace(node, "is to go off");
  for (const auto& [name, pod] : FakeStore::Objects(cluster_.All("pods")))
    if (NodeOf(*pod) == node) Disrupt(name, "Terminated");
  lab_.timeline.After(lab_.random.Between(1s, 5s), [this, node] { CutPower(node); });
}

void Kubelets::CutOff(const std::string& node) { LoseNode(node, false); }
void Kubelets::CutPower(const std::string& node) { LoseNode(node, true); }

void Kubelets::Vanish(const std::string& node) {
  Machine& machine = machines_[node];
  if (!machine.there) return;
  lab_.trace(node, "vanishes");
  const int boots = machine.boots;
  machine = {.there = false, .heard = false, .boots = boots + 1};
  containers_.EndAllOn(node);
  on_lost(node, true, true);
  cluster_.Delete(kubernetes::Nodes(), {"", node}, "");
  // The collector of pods comes later.
  lab_.timeline.After(lab_.random.Between(10ms, 20s), [this, node] {
    for (const auto& [name, pod] : FakeStore::Objects(cluster_.All("pods"))) {
      if (NodeOf(*pod) == node && !machines_[node].taken_in.contains(UidOf(*pod)))
        cluster_.Delete(kubernetes::Pods(), name, UidOf(*pod), 0);
    }
  });
}

void Kubelets::Return(const std::string& node) {
  Machine& machine = machines_[node];
  if (machine.there && machine.heard) return;
  lab_.trace(node, "is back");
  const bool was_there = std::exchange(machine.there, true);
  machine.heard = true;
  on_back(node);
  if (!was_there) {
    Post(node);
    // It begins with what was bound to its name after the collector had come; what ran there is the
    // collector's.
    for (const auto& [name, pod] : FakeStore::Objects(cluster_.All("pods"))) {
      const std::string uid = UidOf(*pod);
      if (NodeOf(*pod) == node && !IsOver(*pod) && !IsDeleting(*pod) &&
          TextAt(*pod, {"status", "phase"}) == "Pending")
        After(node, 50ms, [this, name = name, uid, node] { TakeIn(name, uid, node); });
    }
    return;
  }
  cluster_.Patch(kubernetes::Nodes(), {"", node}, "",
                 {{"status", {{"conditions", ReadyIs(true, "KubeletReady")}}}});
  for (const auto& what : std::exchange(machine.when_heard, {})) what();
  // What it finds after a reboot: pods that it has to begin with, that ended with the power, or are to go.
  for (const auto& [name, pod] : FakeStore::Objects(cluster_.All("pods"))) {
    const std::string uid = UidOf(*pod);
    if (NodeOf(*pod) != node || machine.runs.contains(uid)) continue;
    if (IsDeleting(*pod)) {
      After(node, 10ms, [this, name = name, uid, node] { Remove(name, uid, node); });
    } else if (!IsOver(*pod) && machine.taken_in.contains(uid)) {
      if (TextAt(*pod, {"status", "phase"}) == "Running" || machine.made.contains(uid)) {
        // What the runtime says of a container that ended with the machine.
        const Json unknown = {{"terminated", {{"exitCode", 255}, {"reason", "Unknown"}}}};
        Json status = Ended("Failed");
        status["containerStatuses"] = Json::array({{{"name", "main"}, {"state", unknown}}});
        SetPhase(name, uid, std::move(status));
      } else {
        After(node, 50ms, [this, name = name, uid, node] { StartPod(name, uid, node); });
      }
    } else if (!IsOver(*pod)) {
      After(node, 50ms, [this, name = name, uid, node] { TakeIn(name, uid, node); });
    }
  }
}

}  // namespace siding::simulation::pods
