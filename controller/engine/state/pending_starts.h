// Orders to start tasks of jobs that have ended since: they may still be on their way to an agent.
#pragma once

#include <map>
#include <set>

#include "controller/engine/state/cluster_view.h"

namespace siding {

// Not durable: agents have read every order of an earlier controller when they say hello. Not thread-safe:
// used under the engine's lock. What is passed in must outlive it.
class PendingStarts {
 public:
  PendingStarts(const ClusterState& state, const ClusterView& cluster) : state_(state), cluster_(cluster) {}

  // The job ends, and no other record says that it was to be started.
  void NoteStartsOf(const JobRecord& job);
  // The node's agent has said what it has, or is away.
  void Forget(const NodeId& node) { starts_.erase(node); }
  void Forget(const NodeId& node, const TaskId& task);
  // Events that were not durable have been taken back: of a job whose end was among them, it is decided
  // again.
  void TakeBack();

  const std::map<NodeId, std::set<TaskId>>& all() const { return starts_; }
  const std::set<TaskId>& On(const NodeId& node) const;

 private:
  const ClusterState& state_;
  const ClusterView& cluster_;
  std::map<NodeId, std::set<TaskId>> starts_;
};

}  // namespace siding
