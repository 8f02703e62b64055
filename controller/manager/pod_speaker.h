// Who speaks to the engine for the nodes of a Kubernetes cluster, and what the engine's orders become there.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "controller/engine/agents.h"
#include "controller/platform/kubernetes/kubernetes_platform.h"

namespace siding {

class PodSpeaker : public AgentLink, public AgentEvents {
 public:
  // Who hears of nodes and tasks; before the first round, and before the first agent.
  virtual void SetEngine(AgentEvents& engine) = 0;
  // Called when a round is due, also under the engine's lock.
  virtual void SetBell(std::function<void()> bell) = 0;
  // At every change in the cluster: tells the engine what has changed, and carries out its orders. One call
  // at a time, of this one and of the next two.
  virtual void Round(const kubernetes::ClusterNow& cluster, Time now) = 0;
  // The pods that are to be evicted, by all that the engine has ordered so far.
  virtual std::vector<kubernetes::Eviction> Unwanted(const kubernetes::ClusterNow& cluster, Time now) = 0;
  // One of these still is.
  virtual bool IsUnwanted(const kubernetes::Eviction& eviction) = 0;
  // Of one that Unwanted() has returned; see PlatformListener.
  virtual void OnAnswer(const kubernetes::Eviction&, const absl::Status&) {}
  // The cluster is not known any more.
  virtual void Leave() = 0;
};

}  // namespace siding
