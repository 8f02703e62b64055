// Tasks that no recorded state asks for are ended, and what agents need not remember is forgotten.
//
// Used under the engine's lock.
#pragma once

#include <map>
#include <vector>

#include "controller/engine/act/orders.h"
#include "controller/engine/state/context.h"

namespace siding {

// Of a node, and when: an agent that always has others does not fill the journal.
struct StraysTold {
  std::vector<TaskId> tasks;  // in their order
  Time at;
};

class Strays {
 public:
  Strays(const Context& c, Orders& orders)
      : state_(c.state),
        observed_(c.observed),
        clock_(c.clock),
        startup_(c.startup),
        cluster_(c.cluster),
        accounts_(c.accounts),
        starts_(c.starts),
        recorder_(c.recorder),
        orders_(orders) {}

  // Ends tasks that no recorded state asks for: of another incarnation, on a node where their job has not
  // been placed, or of a job that has left. A task of a job that the journal does not know is left alone, and
  // an event says so: it may be a user's work, and the journal may be wrong.
  void EndStrays();
  // Ends tasks that jobs which are to start again have left. An agent that does not know the task says so;
  // this order arrives after an order to start it that may still be on its way.
  void EndLeftTasks();
  // Ends starts whose jobs have ended meanwhile. An agent that does not know the task says so.
  void EndPendingStarts();
  // A task that no journal knows here, or of another cluster, continues if it waits for an order: none will
  // come.
  void CallOff(const NodeId& node, const v1::TaskReport& report);

 private:
  void TellOfUnknown(const NodeId& node, const std::map<TaskId, ObservedTask>& tasks);
  void CallOffForgotten(const NodeId& node, const JobRecord& job, const TaskId& id,
                        const v1::TaskReport& report);
  void EndStray(const NodeId& node, const TaskId& task, int64_t op);
  bool IsLeftAlone(const JobRecord& job, const ObservedTask& task) const;

  const ClusterState& state_;
  ObservedState& observed_;
  const Clock& clock_;
  const StartUp& startup_;
  const ClusterView& cluster_;
  NodeAccounts& accounts_;
  PendingStarts& starts_;
  Recorder& recorder_;
  Orders& orders_;
  std::map<NodeId, StraysTold> told_;
};

}  // namespace siding
