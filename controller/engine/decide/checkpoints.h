// Orders to dump, checkpoints on schedule, and how many are kept.
//
// Used under the engine's lock.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "controller/engine/decide/checkpoint_schedule.h"
#include "controller/engine/decide/image_quota.h"
#include "controller/engine/state/context.h"

namespace siding {

class Checkpoints {
 public:
  Checkpoints(const Context& c, ImageQuota& quota, CheckpointSchedule& schedule)
      : state_(c.state),
        policy_(c.policy),
        clock_(c.clock),
        cluster_(c.cluster),
        manager_(c.manager),
        tiers_(c.tiers),
        recorder_(c.recorder),
        quota_(quota),
        schedule_(schedule),
        startup_(c.startup) {}

  // An order to dump it, with the time that this is expected to take.
  JobMoved OrderDump(const JobRecord& job, Tier tier) const;
  // The same for an image after which it runs on.
  JobMoved OrderImage(const JobRecord& job, Tier tier) const;
  // The same with the notice that the job asked for.
  JobMoved OrderLeave(const JobRecord& job, Tier tier) const;
  // Where the job's image has room: in this tier, or else in the other, if it can be used there. None:
  // nowhere.
  std::optional<Tier> TierWithRoom(const JobRecord& job, Tier rather) const;
  // The job is over.
  void Forget(JobId job) {
    without_room_.erase(job);
    look_at_.erase(job);
  }
  // Orders those checkpoints that are due, what is late first. Returns whose. Only so many are under way at
  // once: jobs are due together after a policy was loaded, or after the controller was away.
  std::vector<JobId> CheckpointOnSchedule();
  // Keeps the newest good checkpoints of a job that is not over, and at least one. Damaged ones are not
  // counted. A deletion is recorded before it is ordered, and a checkpoint counts only when the images of all
  // ranks are there, so an older one is never deleted before that.
  void ExpireCheckpoints(const JobRecord& job);

  // By a step of a plan that is still to come.
  bool LeavesWithin(const JobRecord& job, Duration time) const;

 private:
  struct Due {
    Duration late;
    const JobRecord* job;
    CheckpointSchedule::Schedule schedule;
  };
  std::optional<Due> IfDue(const JobRecord& job);
  struct UnderWay {
    size_t count = 0;
    Bytes bytes;
    void Add(Bytes image) {
      ++count;
      bytes += image;
    }
  };
  bool IsBeingImaged(const JobRecord& job) const;
  // False: it is not possible now.
  bool Order(const Due& due);
  struct Leaving {
    Time at;
    bool is_only_ended;  // without an image of that moment
  };
  // By the first step of a plan that is still to come; none: there is none.
  std::optional<Leaving> LeavesNext(const JobRecord& job) const;
  // It will be asked to leave, and must not be busy with another image then.
  bool IsWantedSoon(const JobRecord& job, const CheckpointSchedule::Schedule& schedule) const;
  bool HasRoomOnSchedule(const JobRecord& job);
  // Of the way to shared storage, by its next image.
  Bytes SharedBytesOfNext(const JobRecord& job) const;

  const ClusterState& state_;
  const Policy& policy_;
  const Clock& clock_;
  const ClusterView& cluster_;
  const ManagerView& manager_;
  const TierRoom& tiers_;
  Recorder& recorder_;
  ImageQuota& quota_;
  CheckpointSchedule& schedule_;
  const StartUp& startup_;
  std::map<JobId, Time> look_at_;  // none is due before
  std::set<JobId> without_room_;   // of which it is noted that there is none for their images
};

}  // namespace siding
