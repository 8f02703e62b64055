// Who speaks to the engine for the nodes of a Kubernetes cluster, and what the engine's orders become there.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/units.h"
#include "controller/platform/agents.h"
#include "controller/platform/kubernetes/objects/eviction.h"
#include "controller/platform/kubernetes/speak/cluster_now.h"

namespace siding::kubernetes {

// As the platform sees it. It calls on a thread of its own, one call at a time, and without a lock.
class NodeSpeaker {
 public:
  virtual ~NodeSpeaker() = default;
  // Called when a round is due, also under the engine's lock.
  virtual void SetBell(const std::function<void()>&) {}
  // The cluster as it is now, at every change and every `PlatformOptions::round`, as long as it is known: not
  // while the server cannot be watched. Tells the engine what has changed, and carries out its orders.
  virtual void Round(const ClusterNow& cluster, Time now) = 0;
  // The pods that are to be evicted, by all that the engine has ordered so far, once all that has changed was
  // told in this round. What is still asked for next time is tried again.
  virtual std::vector<Eviction> Unwanted(const ClusterNow& cluster, Time now) = 0;
  // One of these still is, right before it is done: the calls of a round may take long.
  virtual bool IsUnwanted(const Eviction& eviction) = 0;
  // Of one that Unwanted() has returned: what was asked with `only_ask`; and of others that are not saved,
  // that they were refused. kFailedPrecondition: a disruption budget is in the way. In the same round.
  virtual void OnAnswer(const Eviction&, const absl::Status&) {}
  // The cluster is not known any more.
  virtual void Leave() {}
};

class PodSpeaker : public NodeSpeaker, public AgentLink, public AgentEvents {
 public:
  // Who hears of nodes and tasks; before the first round, and before the first agent.
  virtual void SetEngine(AgentEvents& engine) = 0;
};

// `saves`: agents do, for those pods that they can save. Otherwise siding speaks for all nodes of the cluster
// itself, with such heartbeats. `agents` must outlive it.
std::unique_ptr<PodSpeaker> NewPodSpeaker(bool saves, AgentLink& agents, Duration heartbeat);

}  // namespace siding::kubernetes
