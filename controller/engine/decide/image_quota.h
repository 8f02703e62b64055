// The storage that one user's images may take. A checkpoint that a user asks for, or has made on schedule,
// has to fit in it. One by which a job makes way for others is never refused: its user did not ask for it.
//
// Used under the engine's lock.
#pragma once

#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "controller/engine/engine.h"
#include "controller/engine/state/context.h"

namespace siding {

class ImageQuota {
 public:
  explicit ImageQuota(const Context& c)
      : state_(c.state), policy_(c.policy), cluster_(c.cluster), recorder_(c.recorder) {}

  void Forget(JobId job) { without_room_.erase(job); }

  // The superseded images to delete for an image of the job, if the caller is bound to the quota and the job
  // would leave one. kResourceExhausted: they would not be enough.
  absl::StatusOr<std::vector<CheckpointId>> MakesRoomFor(const Caller& caller, const JobRecord& job) const;
  // Records that they are deleted.
  void GiveUpImages(const std::vector<CheckpointId>& ids);
  // Deletes superseded images if need be. False: there is no room for a checkpoint on schedule, which is
  // noted once.
  bool HasRoomOnSchedule(const JobRecord& job);

 private:
  // The same without a caller.
  absl::StatusOr<std::vector<CheckpointId>> MakesRoomForImage(const JobRecord& job) const;

  const ClusterState& state_;
  const Policy& policy_;
  const ClusterView& cluster_;
  Recorder& recorder_;
  std::set<JobId> without_room_;  // of which it is noted that their images would be too many
};

}  // namespace siding
