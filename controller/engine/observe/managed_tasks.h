// Jobs whose tasks a cluster manager starts. It decides when and where they run, and the engine follows.
//
// Agents' reports tell that a task has started: Follow() makes the job's record, and records its start when
// all tasks that belong together have been seen alive on nodes that the manager's queue names. Orders to such
// a job go the usual way; its tasks leave, and the cluster manager puts it back into its own queue. What that
// queue says is ManagedQueue's.
//
// A batch script and the steps that it starts are tasks of one job. A script that has started a step cannot
// be dumped, the step can: it stands for the job while it runs, and the script does afterwards
// (BackToScript).
//
// Used under the engine's lock.
#pragma once

#include <vector>

#include "controller/engine/decide/recovery.h"
#include "controller/engine/state/context.h"

namespace siding {

class ManagedTasks {
 public:
  struct ManagedTask {
    NodeId node;
    const v1::TaskReport* report;
  };

  ManagedTasks(const Context& c, Recovery& recovery)
      : state_(c.state),
        observed_(c.observed),
        clock_(c.clock),
        platform_(c.platform),
        manager_(c.manager),
        recorder_(c.recorder),
        limited_log_(c.limited_log),
        recovery_(recovery) {}

  // A report of a task: if it is a cluster manager's, and new, its job is recorded as started.
  void Follow(const NodeId& node, const v1::TaskReport& report);
  // A step has ended, and its job's script continues, or has ended with it: then the script's end is the
  // job's end. True: it was recorded.
  bool BackToScript(const JobRecord& job);

 private:
  bool MayClaim(const NodeId& node);
  const JobRecord* FindManaged(const v1::TaskReport& report);
  std::vector<ManagedTask> TasksTogether(const NodeId& node, const v1::TaskReport& report) const;
  bool AreWholeJob(JobId id, const std::vector<ManagedTask>& tasks) const;

  const ClusterState& state_;
  ObservedState& observed_;
  const Clock& clock_;
  const Platform& platform_;
  const ManagerView& manager_;
  Recorder& recorder_;
  LimitedLog& limited_log_;
  Recovery& recovery_;
};

}  // namespace siding
