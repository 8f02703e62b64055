// The nodes of a simulated cluster, and their kubelets: a pod that is bound is taken in if there is room,
// starts after a while, works as long as it is to, and ends within its grace when it is deleted.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "tests/simulation/kubernetes/containers.h"

namespace siding::simulation::pods {

inline constexpr int kCpuOfNode = 4000;  // thousandths

// Not thread-safe.
class Kubelets {
 public:
  Kubelets(Lab& lab, Cluster& cluster, Containers& containers);

  void Add(const std::string& node);
  void OnChange(const FakeStore::Event& event);
  const std::map<std::string, int>& names() const { return names_; }

  // ---- What happens to nodes. ----
  // Its kubelet is not heard; what runs there runs on, and is heard of when it is back.
  void CutOff(const std::string& node);
  // The machine is off: nothing that ran there runs on when it is back.
  void CutPower(const std::string& node);
  // It is taken out of the cluster, and its pods are gone.
  void Vanish(const std::string& node);
  // Whatever has happened to it.
  void Return(const std::string& node);
  bool IsWell(const std::string& node) const;
  // It is told that it is to go off: its kubelet ends what runs there, and says why, before it is.
  void ShutDown(const std::string& node);

  // ---- What happens to pods. ----
  // Its kubelet ends it, for its own reasons. No: it does not have it.
  bool Disrupt(const ObjectName& pod, const std::string& reason);
  // Its program fails, or somebody kills it.
  bool Crash(const ObjectName& pod);

  // Called when a node is lost, and when it is back. `power`: nothing runs there any more. `gone`: it is not
  // in the cluster any more.
  std::function<void(const std::string& node, bool power, bool gone)> on_lost = [](const std::string&, bool,
                                                                                   bool) {};
  std::function<void(const std::string& node)> on_back = [](const std::string&) {};
  // Called when a pod was turned down for want of room.
  std::function<void(const Json& pod)> on_turned_down = [](const Json&) {};
  // Called when a pod has done all its work.
  std::function<void(const Json& pod)> on_done = [](const Json&) {};

 private:
  struct Machine {
    bool there = true;
    bool heard = true;
    int boots = 1;
    std::set<std::string> taken_in;                // uids
    std::set<std::string> runs;                    // of these
    std::set<std::string> made;                    // of these, by siding-runc
    std::deque<std::function<void()>> when_heard;  // what it has to say
  };

  void Post(const std::string& name);
  void After(const std::string& node, Duration delay, std::function<void()> what);
  // The pod is still this one, and on this node. Null: no.
  FakeStore::Value Look(const ObjectName& pod, const std::string& uid);
  void TakeIn(const ObjectName& name, const std::string& uid, const std::string& node);
  void StartPod(const ObjectName& name, const std::string& uid, const std::string& node);
  void EndPod(const ObjectName& name, const std::string& uid, const std::string& node);
  // The container of a pod of the runtime class.
  void OnMade(const Container& container);
  void OnExit(const Container& container, const char* phase);
  void Succeed(const ObjectName& name, const std::string& uid, const std::string& node);
  void Remove(const ObjectName& name, const std::string& uid, const std::string& node);
  void SetRunning(const ObjectName& name, const std::string& uid);
  void SetPhase(const ObjectName& name, const std::string& uid, Json status);
  void LoseNode(const std::string& node, bool power);

  Lab& lab_;
  Cluster& cluster_;
  Containers& containers_;
  std::map<std::string, Machine> machines_;
  std::map<std::string, int> names_;  // and how often it was made
  std::set<std::string> ending_;      // uids
};

}  // namespace siding::simulation::pods
