// Speaks for the nodes of a Kubernetes cluster that have no agent of siding's: what the API server says of a
// node and its pods is told to the engine as an agent there would tell it, and an order to end a task becomes
// the eviction of its pod. So the engine knows nothing of pods.
//
// What only an agent can do, it says that it cannot: pods are neither frozen nor dumped. An agent that dials
// for such a node is refused: it would know nothing of the pods, and be asked about them.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/limited_log.h"
#include "common/mutex.h"
#include "controller/platform/agents.h"
#include "controller/platform/kubernetes/speak/cluster_now.h"
#include "controller/platform/kubernetes/speak/pod_speaker.h"
#include "controller/platform/kubernetes/speak/spoken_pods.h"

namespace siding::kubernetes {

class PodAgents final : public PodSpeaker {
 public:
  // Orders for nodes that are not spoken for go to `others`, which must outlive it. Heartbeats follow each
  // other by `heartbeat`.
  PodAgents(AgentLink& others, Duration heartbeat) : others_(others), heartbeat_(heartbeat) {}
  void SetEngine(AgentEvents& engine) override { engine_ = &engine; }
  void SetBell(const std::function<void()>& bell) override;

  // Of the engine; see AgentLink.
  void Send(const NodeId& node, v1::ToAgent command) override;
  // Of the gateway: agents of machines that are no nodes of the cluster. kUnavailable: it is not known yet
  // which these are. kFailedPrecondition: it is one, or was.
  absl::Status OnConnected(const NodeId& node, const v1::Hello& hello) override;
  void OnMessage(const NodeId& node, const v1::FromAgent& message) override {
    engine_->OnMessage(node, message);
  }
  void OnDisconnected(const NodeId& node) override { engine_->OnDisconnected(node); }

  void Round(const ClusterNow& cluster, Time now) override;
  std::vector<Eviction> Unwanted(const ClusterNow& cluster, Time now) override;
  bool IsUnwanted(const Eviction& eviction) override;
  void OnAnswer(const Eviction& asked, const absl::Status& answer) override;
  // As if all its agents had gone.
  void Leave() override;

 private:
  struct Machine {
    std::string uid;
    Time last_heartbeat{};
  };
  void Meet(const ClusterNow& cluster);
  SpokenPods::SpeaksFor WhomItHasMet() const;
  void ObeyAll();
  void Obey(const NodeOrder& order);
  void Beat(const ClusterNow& cluster, Time now);

  AgentLink& others_;
  const Duration heartbeat_;
  AgentEvents* engine_ = nullptr;
  LimitedLog log_;
  // Of the one who calls Round().
  std::map<NodeId, Machine> machines_;
  SpokenPods pods_;
  Mutex mutex_;
  std::set<NodeId> served_ ABSL_GUARDED_BY(mutex_);
  bool known_ ABSL_GUARDED_BY(mutex_) = false;      // the nodes of the cluster are
  std::set<NodeId> nodes_ ABSL_GUARDED_BY(mutex_);  // all that have been seen
  std::vector<NodeOrder> orders_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> bell_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace siding::kubernetes
