// Questions about jobs of a cluster manager: what its queue says, and what follows for siding.
//
// Reads only. Not thread-safe: used under the engine's lock. What is passed in must outlive it.
#pragma once

#include <map>
#include <string>

#include "common/clock.h"
#include "controller/engine/state/cluster_state.h"
#include "controller/engine/state/cluster_view.h"
#include "controller/platform/platform.h"
#include "model/policy.h"

namespace siding {

class ManagerView {
 public:
  ManagerView(const ClusterState& state, const Policy& policy, const Clock& clock, const Platform& platform,
              const ClusterView& cluster)
      : state_(state), policy_(policy), clock_(clock), platform_(platform), cluster_(cluster) {}

  // It answers, and has said what it has; or there is none. Otherwise what is known of its jobs and nodes is
  // nothing, or old.
  bool IsHeard() const;
  // Null: it is not in a cluster manager's queue.
  const ManagedJob* QueuedAs(JobId id) const;
  // By the queue it runs, with all of its tasks.
  bool RunsInQueue(JobId id) const;
  // What the queue says of a job that the manager has started again and no agent has reported yet; null: it
  // has not.
  const ManagedJob* ComingBack(const JobRecord& job) const;
  // The manager has given a request its nodes, and it has yet to start there.
  bool IsAboutToStart(const JobRecord& request) const;
  // While a job runs, the queue knows where. An agent elsewhere that reports a task of it is not believed.
  bool MayRunOn(JobId id, const NodeId& node) const;
  // A step has ended, but the job has not: what else it does is not known. The queue will say when it is
  // over.
  bool ContinuesInQueue(const JobRecord& job) const;
  // A script that has started a step cannot be dumped, the step can: it stands for the job while it runs. So
  // does the next one after it.
  bool IsStepOf(const JobRecord& job, const TaskId& task) const;
  // Tasks of another step of the job run beside those that stand for it: these cannot leave without them.
  bool HasOtherSteps(const JobRecord& job) const;
  // Why it could not continue from images on its nodes' own disks; empty: it could.
  std::string WhyNotLocal(const JobRecord& job) const;
  // Its images are kept: it may still continue from them, or its user may want to find why it failed.
  bool KeepsImages(const JobRecord& job) const;
  // Somebody whom siding is done with, such as a request that was cancelled, has nodes until it has ended.
  bool HasWhatOnlyEnds() const;
  // What the manager's other jobs hold: those that siding does not move, those that only end, and those that
  // it has started again and no agent has reported yet.
  void TakeOthers(std::map<NodeId, Resources>& room) const;

 private:
  bool MayComeBack(const JobRecord& job) const;

  const ClusterState& state_;
  const Policy& policy_;
  const Clock& clock_;
  const Platform& platform_;
  const ClusterView& cluster_;
};

}  // namespace siding
