// Pods of which no agent knows anything, told of as an agent would tell of its tasks: such a pod can be
// evicted, and what only an agent can do, it says that it cannot.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/platform/agents.h"
#include "controller/platform/kubernetes/objects/eviction.h"
#include "controller/platform/kubernetes/speak/cluster_now.h"

namespace siding::kubernetes {

// An order of the engine's to the agent of a node.
using NodeOrder = std::pair<NodeId, v1::ToAgent>;

// Not thread-safe.
class SpokenPods {
 public:
  // On nodes for which nobody speaks at the moment nothing is told.
  using SpeaksFor = std::function<bool(const NodeId&)>;

  // Adds to the first word of a node the pods that are there.
  void Introduce(const NodeId& node, const std::vector<PodTask>& tasks, v1::Hello& hello);
  // Tells what has changed since the last call.
  void Observe(const std::vector<PodTask>& tasks, const SpeaksFor& speaks_for, AgentEvents& events);
  void Obey(const NodeOrder& order, AgentEvents& events);
  // Its pod was not evicted as it was to be. It is tried again until that is taken back (Abort).
  void Refuse(const std::string& uid, const std::string& why, AgentEvents& events);
  // Those that are to be evicted. Not where nobody speaks: what was ordered could not be taken back there.
  void AddEvictions(const std::vector<PodTask>& tasks, const SpeaksFor& speaks_for,
                    std::vector<Eviction>& evictions) const;
  // The pod of this uid is one of them.
  bool IsUnwanted(const std::string& uid, const SpeaksFor& speaks_for) const;
  // As they were told last, to the beats of their nodes.
  void AddTo(std::map<NodeId, v1::FromAgent>& beats) const;

 private:
  struct Task {
    NodeId node;
    v1::TaskReport report;
    bool leaves = false;  // its pod is being deleted
  };
  void Tell(Task& task, AgentEvents& events);
  // The order to end it.
  void TakeBack(Task& task, const TaskId& id, AgentEvents& events);
  v1::TaskReport ReportOf(const PodTask& task) const;
  // Without a word about its work: evicted as ordered, or by somebody else's will.
  void SetEnded(v1::TaskReport& report) const;

  std::map<TaskId, Task> tasks_;  // as they were told last; those that are over until they are forgotten
  std::map<TaskId, int64_t> unwanted_;  // are to be ended, or were, by this operation
  std::set<TaskId> forgotten_;          // are over, and their pods are still there
  int64_t version_ = 0;
};

}  // namespace siding::kubernetes
