// Orders to dump, checkpoints on schedule, and how many are kept.
//
// Used under the engine's lock.
#pragma once

#include <optional>
#include <set>

#include "controller/engine/decide/image_quota.h"
#include "controller/engine/state/context.h"

namespace siding {

class Checkpoints {
 public:
  Checkpoints(const Context& c, ImageQuota& quota)
      : state_(c.state),
        policy_(c.policy),
        clock_(c.clock),
        cluster_(c.cluster),
        manager_(c.manager),
        tiers_(c.tiers),
        recorder_(c.recorder),
        quota_(quota) {}

  // An order to dump it, with the time that this is expected to take.
  JobMoved OrderDump(const JobRecord& job, Tier tier) const;
  // The same with the notice that the job asked for.
  JobMoved OrderLeave(const JobRecord& job, Tier tier) const;
  // Where the job's image has room: in this tier, or else in the other, if it can be used there. None:
  // nowhere.
  std::optional<Tier> TierWithRoom(const JobRecord& job, Tier rather) const;
  // The job is over.
  void Forget(JobId job) { without_room_.erase(job); }
  // Orders a checkpoint if one is due. True: it was ordered.
  bool CheckpointOnSchedule(const JobRecord& job);
  // Keeps the newest good checkpoints of a job that is not over, and at least one. Damaged ones are not
  // counted. A deletion is recorded before it is ordered, and a checkpoint counts only when the images of all
  // ranks are there, so an older one is never deleted before that.
  void ExpireCheckpoints(const JobRecord& job);

  // By a step of a plan that is still to come.
  bool LeavesWithin(const JobRecord& job, Duration time) const;

 private:
  Duration CheckpointIntervalOf(const JobRecord& job) const;
  bool HasRoomOnSchedule(const JobRecord& job);

  const ClusterState& state_;
  const Policy& policy_;
  const Clock& clock_;
  const ClusterView& cluster_;
  const ManagerView& manager_;
  const TierRoom& tiers_;
  Recorder& recorder_;
  ImageQuota& quota_;
  std::set<JobId> without_room_;  // of which it is noted that the shared tier has none for their images
};

}  // namespace siding
