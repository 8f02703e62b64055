// Looks at every change that siding makes to a simulated cluster, and says what it must not do. It knows what
// is true there, never what the controller believes.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "common/ids.h"
#include "controller/engine/state/cluster_state.h"
#include "tests/simulation/kubernetes/cluster.h"
#include "tests/simulation/kubernetes/told.h"

namespace siding::simulation::pods {

// A controller that asks for something.
struct Caller {
  const Told& told;  // before its present round
  Time sent;
};

// Not thread-safe.
class Audit {
 public:
  // `recorded`: what the journal says.
  Audit(Lab& lab, Cluster& cluster, const ClusterState& recorded)
      : lab_(lab), cluster_(cluster), recorded_(recorded) {}

  // Asks the cluster for this, as siding.
  HttpResponse Ask(const HttpRequest& request, const Caller& caller);
  // Of the journal: orders to end a job.
  void OnEvent(const Event& event);
  // Nothing is known against its eviction; else why it may not be. Of clusters whose pods are saved.
  std::function<std::string(const Json& pod, bool at_once)> why_not_evicted;
  // The same of one that is deleted whatever budgets say.
  std::function<std::string(const Json& pod)> why_not_deleted;
  // siding was told that this pod may go, and will have it saved for that.
  std::function<void(const Json& pod)> on_may_go;
  // A pod that was there a moment ago is evicted.
  std::function<void(const Json& pod, const Caller& caller)> on_evicted;
  // The pod goes on with the job of this number.
  std::function<bool(const Json& pod, int64_t number)> is_heir;
  // The number that siding gave the pod; 0: none.
  int64_t NumberOf(const Json& pod) const;
  // The ConfigMap of numbers was deleted: those of pods that are gone may be given again.
  void OnNumbersLost();
  // A kubelet had no room for this pod.
  void OnTurnedDown(const Json& pod);

  // ---- At the end. ----
  // A mark of siding's that is left; empty: none is.
  std::string Leftover();

 private:
  struct Numbered {
    int64_t job = 0;
    Time at;
  };
  void CheckEvicted(const Json& pod, const Json& body);
  void CheckDeleted(const Json& pod, const Json& options);
  void CheckBound(const Json& pod, const std::string& node);
  void CheckPodPatched(const Json& before, const Json& after);
  void CheckNodePatched(const Json& before, const Json& after);
  void CheckNumber(const Json& pod, int64_t number);

  Lab& lab_;
  Cluster& cluster_;
  const ClusterState& recorded_;
  std::map<std::string, Numbered> numbered_;  // by uid: what siding wrote last
  std::map<int64_t, std::string> holders_;    // by number: the pod's uid or its gang
  std::map<int64_t, Time> to_be_ended_;       // jobs, and when that was ordered last
  bool numbers_lost_ = false;
  std::set<std::string> kept_;   // uids, by budgets, when siding evicted them
  std::set<std::string> bound_;  // uids, by siding
};

}  // namespace siding::simulation::pods
