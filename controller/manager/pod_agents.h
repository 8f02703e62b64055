// Speaks for the nodes of a Kubernetes cluster that have no agent of siding's: what the API server says of a
// node and its pods is told to the engine as an agent there would tell it, and an order to end a task becomes
// the eviction of its pod. So the engine knows nothing of pods.
//
// What only an agent can do, it says that it cannot: pods are neither frozen nor dumped.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/limited_log.h"
#include "common/mutex.h"
#include "controller/engine/engine.h"
#include "controller/gateway/agent_events.h"
#include "controller/platform/kubernetes/kubernetes_platform.h"

namespace siding {

class PodAgents final : public AgentLink {
 public:
  // Orders for nodes that are not spoken for go to `others`, which must outlive it.
  explicit PodAgents(AgentLink& others) : others_(others) {}
  // Called when there is an order, under the engine's lock.
  void SetBell(std::function<void()> bell);

  // Of the engine; see AgentLink.
  void Send(const NodeId& node, v1::ToAgent command) override;

  // Tells what has changed since the last call, and answers the orders that came meanwhile. Heartbeats follow
  // each other by `heartbeat`. Returns the pods that are to be evicted. One call at a time.
  std::vector<kubernetes::PodTask> Round(const kubernetes::ClusterNow& cluster, Time now, Duration heartbeat,
                                         AgentEvents& events);
  // As if all its agents had gone.
  void Leave(AgentEvents& events);

 private:
  using Order = std::pair<NodeId, v1::ToAgent>;
  struct Machine {
    std::string uid;
    Time last_heartbeat{};
  };
  struct Task {
    NodeId node;
    v1::TaskReport report;
  };

  void Meet(const kubernetes::ClusterNow& cluster, AgentEvents& events);
  void Observe(const std::vector<kubernetes::PodTask>& tasks, AgentEvents& events);
  void Obey(const Order& order, AgentEvents& events);
  void Beat(const kubernetes::ClusterNow& cluster, Time now, Duration heartbeat, AgentEvents& events);
  void Tell(Task& task, AgentEvents& events);
  v1::TaskReport ReportOf(const kubernetes::PodTask& task) const;

  AgentLink& others_;
  LimitedLog log_;
  // Of the one who calls Round().
  std::map<NodeId, Machine> machines_;
  std::map<TaskId, Task> tasks_;  // as they were told last; those that are over until they are forgotten
  std::set<TaskId> unwanted_;     // are to be ended, or were
  std::set<TaskId> forgotten_;    // are over, and their pods are still there
  int64_t version_ = 0;
  Mutex mutex_;
  std::set<NodeId> served_ ABSL_GUARDED_BY(mutex_);
  std::vector<Order> orders_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> bell_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace siding
