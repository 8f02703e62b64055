// What the planner may know: the recorded state and the last reports, as one value.
//
// Used under the engine's lock.
#pragma once

#include <optional>
#include <vector>

#include "controller/engine/decide/checkpoint_schedule.h"
#include "controller/engine/decide/tentative_plan.h"
#include "controller/engine/state/context.h"

namespace siding {

class Planning {
 public:
  Planning(const Context& c, CheckpointSchedule& schedule)
      : state_(c.state),
        policy_(c.policy),
        clock_(c.clock),
        platform_(c.platform),
        cluster_(c.cluster),
        manager_(c.manager),
        tiers_(c.tiers),
        accounts_(c.accounts),
        recorder_(c.recorder),
        schedule_(schedule) {}

  // Everything that a plan for this request, and for those that wait, is made of.
  // `without`: another request, which is taken to be over.
  SharedTask TaskFor(JobId id, const JobSpec& spec, JobId without = JobId()) const;
  // As these requests see the cluster, their own reservations included.
  Snapshot TakeSnapshot(const std::vector<JobId>& requests) const;
  // What was predicted, or what the dump's own progress says once it has come far enough to say anything.
  // None: it was to be ended by its walltime, should be gone by now, and nobody knows when it will be.
  std::optional<Time> ExpectedRelease(const JobRecord& job) const;
  // When it will have been saved, and can be asked to leave. None: no checkpoint is being made after which it
  // runs on, or nobody knows.
  std::optional<Time> SavedBy(const JobRecord& job) const;
  // The longest time for which it holds its nodes by its walltime, from its start or from now, the time
  // included that it may take to end. Below zero: it should be gone. None: it has no walltime, or is in a
  // state in which that does not count.
  std::optional<Duration> TimeLeft(const JobRecord& job) const;
  // When its nodes will be free by its walltime. None: nobody knows.
  std::optional<Time> ExpectedEnd(const JobRecord& job) const;
  // The job as its record describes it, in whatever state it is.
  JobView ViewOf(const JobRecord& job) const;
  // What the plans rest on has not changed.
  bool StandsOn(const TentativePlan& tentative) const;
  // Plans that were made without the lock are as good as those that would be made now.
  bool StillGood(const TentativePlan& tentative, const JobSpec& spec) const;
  // On the nodes that are known and it may have, were they empty and all up.
  bool CouldEverFit(const JobSpec& spec) const;
  // It waits its turn, ahead of all batch jobs. False: it could never run.
  bool Queue(const JobSpec& spec, Plan& plan) const;

 private:
  Snapshot SnapshotFor(const JobSpec& spec, const std::vector<JobId>& requests) const;
  void AddImages(JobView& view, const JobRecord& job) const;
  JobView ViewOfComingBack(const JobRecord& job, const ManagedJob& queued) const;

  const ClusterState& state_;
  const Policy& policy_;
  const Clock& clock_;
  const Platform& platform_;
  const ClusterView& cluster_;
  const ManagerView& manager_;
  const TierRoom& tiers_;
  const NodeAccounts& accounts_;
  Recorder& recorder_;
  CheckpointSchedule& schedule_;
};

}  // namespace siding
