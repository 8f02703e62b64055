// Tasks that no recorded state asks for are ended, and what agents need not remember is forgotten.
//
// Used under the engine's lock.
#pragma once

#include "controller/engine/act/orders.h"
#include "controller/engine/state/context.h"

namespace siding {

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
        orders_(orders) {}

  // Tasks that no recorded state asks for: of another incarnation, somewhere else than their job has been
  // placed, or of a job that has left. A task of a job that the journal does not know is left alone: it is
  // somebody's work, and perhaps the journal is wrong.
  void EndStrays();
  // Of jobs that are to start again: an agent that knows nothing of the task says so when it is told to end
  // it, and it comes behind an order to start it that may still be on its way.
  void EndLeftTasks();
  // An agent that has heard nothing of them says so.
  void EndPendingStarts();

 private:
  void EndStray(const NodeId& node, const TaskId& task, int64_t op);
  bool IsLeftAlone(const JobRecord& job, const ObservedTask& task) const;
  void CallOff(const NodeId& node, const TaskId& id, const v1::TaskReport& report);

  const ClusterState& state_;
  ObservedState& observed_;
  const Clock& clock_;
  const StartUp& startup_;
  const ClusterView& cluster_;
  NodeAccounts& accounts_;
  PendingStarts& starts_;
  Orders& orders_;
};

}  // namespace siding
