// Recovery after an older copy of the journal was put back: agents know more than it does. Nothing is placed
// before they have had time to report; jobs that were moved since are found where they are now.
//
// Used under the engine's lock.
#pragma once

#include <vector>

#include "controller/engine/decide/recovery.h"
#include "controller/engine/state/context.h"

namespace siding {

class CopyRecovery {
 public:
  CopyRecovery(const Context& c, Recovery& recovery)
      : state_(c.state),
        clock_(c.clock),
        startup_(c.startup),
        cluster_(c.cluster),
        recorder_(c.recorder),
        recovery_(recovery) {}

  // At the start: if the journal is a copy that was put back, that is recorded.
  void NoteRestored();
  // At every tick: tasks that the journal does not know are seen before they are ended.
  void HoldBack();
  // A report of a task that has been moved since the journal was copied. Agents do not decide where siding's
  // own jobs run; the exception is these seconds, for jobs of the copy.
  void CatchUp(const v1::TaskReport& report);
  // A live task of a life that the journal, being a copy, does not know: its job is not started a second time
  // beside it. One of an earlier life is remembered, also while its node is away again.
  void HoldBackBeside(const NodeId& node, const TaskId& id, v1::TaskPhase phase);

 private:
  bool IsGivenUp(const NodeId& node, JobId job) const;
  std::vector<NodeId> WhereItLives(const JobRecord& job, int incarnation) const;

  const ClusterState& state_;
  const Clock& clock_;
  StartUp& startup_;
  const ClusterView& cluster_;
  Recorder& recorder_;
  Recovery& recovery_;
};

}  // namespace siding
