// Stands between the engine and the agents of a Kubernetes cluster's nodes. To the engine each pod of batch
// work is a task of its node's agent, and to an agent its orders are as anywhere; only that here
//
//   - the order to start a task follows from its pod, which the cluster has placed: an agent is told of a pod
//     when the pod is on its node, and how it is to start (DesiredState::Next);
//   - a task ends when its pod does (PodGone), so one that is to be ended, or has been saved to leave, is
//     evicted;
//   - what an agent cannot save it is not told of: of such a pod is told in its place (SpokenPods).
//
// Nothing is remembered that is not in the cluster or with the agents: a controller that begins hears it all
// again, from pods and from Hellos. Until the pods are known, agents are asked to wait.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/mutex.h"
#include "controller/platform/agents.h"
#include "controller/platform/kubernetes/speak/cluster_now.h"
#include "controller/platform/kubernetes/speak/pod_speaker.h"
#include "controller/platform/kubernetes/speak/spoken_pods.h"

namespace siding::kubernetes {

// Thread-safe. The agents must outlive it.
class PodNodes final : public PodSpeaker {
 public:
  explicit PodNodes(AgentLink& agents) : agents_(agents) {}
  void SetEngine(AgentEvents& engine) override { engine_ = &engine; }
  void SetBell(const std::function<void()>& bell) override;

  // Of the engine.
  void Send(const NodeId& node, v1::ToAgent command) override;
  // Of the gateway. kUnavailable: not yet. kFailedPrecondition: the cluster has no such node.
  absl::Status OnConnected(const NodeId& node, const v1::Hello& hello) override;
  void OnMessage(const NodeId& node, const v1::FromAgent& message) override;
  void OnDisconnected(const NodeId& node) override;

  // Of the platform.
  void Round(const ClusterNow& cluster, Time now) override;
  std::vector<Eviction> Unwanted(const ClusterNow& cluster, Time now) override;
  bool IsUnwanted(const Eviction& eviction) override;
  void OnAnswer(const Eviction& asked, const absl::Status& answer) override;
  void Leave() override;

 private:
  // A task of an agent's.
  struct Hosted {
    NodeId node;
    std::string uid;                                   // of its pod
    std::optional<PodTask> pod;                        // as of the last round; nothing: it is gone
    v1::TaskPhase phase = v1::TASK_PHASE_UNSPECIFIED;  // as its agent has said since it connected
    v1::TaskReport last;                               // of its agent
    bool leaves = false;                               // it is saved, and nothing of it runs any more
    bool unwanted = false;                             // it is to be ended, or was
    bool seen = false;                                 // its pod was, in this round
    // Its pod is there, and is no task any more.
    std::optional<ObjectName> stays;
    // A dump after which it would leave, held back until it is known that it could.
    std::optional<v1::ToAgent> leaving;
    // An order to end it, held back until its pod is being deleted: the agent cannot take it back, and a
    // budget may be in the way.
    std::optional<v1::ToAgent> ending;
    bool news = false;                 // of that, the engine has not heard yet
    int64_t refused = 0;               // the last such order that was refused,
    std::string why_refused;           // and why
    std::optional<Time> told;          // when its agent was last told what is still to be told
    std::optional<Time> told_in_vain;  // when its agent was last told that its containers wait in vain
    std::optional<Time> failed;        // when it was first seen that it cannot be started
  };
  // A task of an agent's whose pod went, and whose name another pod has by now.
  struct Replaced {
    std::string uid;  // of its own pod
    bool is_gone = false;
    bool stays = false;
    std::optional<Time> told;
  };
  // To start a job, in a row.
  struct Failures {
    int count = 0;
    Time last;
  };
  using Orders = std::vector<NodeOrder>;
  using Tasks = google::protobuf::RepeatedPtrField<v1::TaskReport>;
  using Reports = std::vector<std::pair<NodeId, v1::FromAgent>>;

  // Notes what an agent says of a task. False: it is of a pod that another has replaced, and still lives
  // there, which is not told: the engine knows only one of that name.
  bool Take(const NodeId& node, const v1::TaskReport& report) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of each of them. Keeps those that are told.
  void TakeAll(const NodeId& node, Tasks& tasks) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of an order, before it goes to its agent. True: it does not.
  bool Hold(Hosted& task, const v1::ToAgent& command) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What the engine is to hear of it.
  v1::FromAgent WordOf(const Hosted& task) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds to it what only the cluster knows.
  void Complete(v1::TaskReport& report) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Orders for pods that agents know nothing of.
  void ObeySpoken() ABSL_EXCLUSIVE_LOCKS_REQUIRED(telling_) ABSL_LOCKS_EXCLUDED(mutex_);
  void TakeHosted() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Observe(const ClusterNow& cluster) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OrderStarts(Time now, Orders& orders) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RefuseStarts(Time now, Orders& orders) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of the same job, whose start is not recorded, so that the engine does not know of it: its pod was deleted
  // before its agent said that it begins, or while it was told so.
  bool AnEarlierOneMayLive(const TaskId& id, const Hosted& task) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // It may also begin yet.
  bool MayLive(const Hosted& task) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OrderEnds(Time now, Orders& orders) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells the agents of those whose pods are being deleted, and the engine what has changed.
  void OrderHeldEnds(Orders& orders, Reports& reports) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LetStart(const std::vector<PlainPod>& pods, Orders& orders) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsUnwanted(const Hosted& task) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddEvictions(Time now, std::vector<Eviction>& evictions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Its pod has, by itself or when it was deleted.
  static bool HasFailed(const Hosted& task);
  // Whether it is time to say it, for the first time or again.
  static bool IsDue(std::optional<Time>& told, Time now);
  void Ring() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  AgentLink& agents_;
  AgentEvents* engine_ = nullptr;
  // Held while the engine is told something, so that it hears of one node in order; never in Send(), which is
  // called under the engine's lock.
  Mutex telling_;
  SpokenPods spoken_ ABSL_GUARDED_BY(telling_);
  Mutex mutex_ ABSL_ACQUIRED_AFTER(telling_);
  bool known_ ABSL_GUARDED_BY(mutex_) = false;  // the pods and nodes are
  std::map<NodeId, Resources> nodes_ ABSL_GUARDED_BY(mutex_);
  std::set<NodeId> connected_ ABSL_GUARDED_BY(mutex_);  // their agents are, and the engine has been told
  std::map<TaskId, Hosted> hosted_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<NodeId, TaskId>, Replaced> replaced_ ABSL_GUARDED_BY(mutex_);
  std::vector<PodTask> others_ ABSL_GUARDED_BY(mutex_);  // that agents know nothing of
  Orders orders_ ABSL_GUARDED_BY(mutex_);                // to those
  std::map<JobId, Failures> failures_ ABSL_GUARDED_BY(mutex_);
  // Pods that are no tasks, by uid: their nodes, whose agents have been told since they connected.
  std::map<std::string, NodeId> let_start_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> bell_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace siding::kubernetes
