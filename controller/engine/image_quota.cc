// The storage that one user's images may take. A checkpoint that a user asks for, or has made on schedule,
// has to fit in it. One by which a job makes way for others is never refused: its user did not ask for it.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "controller/engine/impl.h"

namespace siding {

// About what an image of it would take now.
Bytes Engine::Impl::SizeOfNextImage(const JobRecord& job) const {
  Bytes size;
  for (int rank : LiveRanks(job)) {
    const v1::TaskReport& report = Seen(job, rank).report;
    size += Bytes{report.memory() + report.gpu_memory()};
  }
  return size;
}

absl::StatusOr<std::vector<CheckpointId>> Engine::Impl::MakesRoomForImage(const JobRecord& job) const {
  const Bytes most = policy_.max_image_bytes_per_user;
  std::vector<CheckpointId> superseded_ids;
  if (most <= Bytes{0}) return superseded_ids;
  Bytes used;
  // Those that nothing depends on while there are newer ones of their jobs.
  std::vector<const CheckpointRecord*> superseded;
  for (const auto& [id, checkpoint] : state_.checkpoints) {
    const auto owner = state_.jobs.find(checkpoint.job);
    if (owner == state_.jobs.end() || owner->second.spec.uid != job.spec.uid) continue;
    const JobRecord& its_job = owner->second;
    if (checkpoint.state.empty()) used += SizeOfNextImage(its_job);
    if (checkpoint.state == "good" || checkpoint.state == "damaged") used += checkpoint.bytes;
    const std::vector<CheckpointId>& good = its_job.checkpoints;
    const bool is_older = std::find(good.begin(), good.end(), id) != good.end() && id != good.back();
    const bool in_use = its_job.state == JobState::kRestoring && its_job.current.checkpoint == id;
    if (is_older && !in_use) superseded.push_back(&checkpoint);
  }
  std::sort(superseded.begin(), superseded.end(),
            [](const auto* a, const auto* b) { return a->created < b->created; });
  const Bytes more = SizeOfNextImage(job);
  Bytes left = used + more;
  for (const CheckpointRecord* checkpoint : superseded) {
    if (left <= most) break;
    left -= checkpoint->bytes;
    superseded_ids.push_back(checkpoint->id);
  }
  if (left <= most) return superseded_ids;
  return absl::ResourceExhaustedError(absl::StrCat(
      "the checkpoints of ", job.spec.user, " take ", FormatBytes(used), ", this one would take about ",
      FormatBytes(more), ", and the policy allows ", FormatBytes(most),
      " (max_image_bytes_per_user); sidingctl checkpoints lists them and deletes what is not needed"));
}

void Engine::Impl::GiveUpImages(const std::vector<CheckpointId>& ids) {
  for (const CheckpointId& id : ids) {
    const JobId job = state_.checkpoints.at(id).job;
    Record(job, CheckpointChanged{id, "deleted", "its user's newer ones need the room"});
  }
}

absl::StatusOr<std::vector<CheckpointId>> Engine::Impl::MakesRoomFor(const Caller& caller,
                                                                     const JobRecord& job) const {
  const bool leaves_one = job.state == JobState::kRunning || job.state == JobState::kSuspended;
  if (caller.is_operator || !leaves_one || !Can(job, Method::kCheckpoint)) return std::vector<CheckpointId>();
  return MakesRoomForImage(job);
}

bool Engine::Impl::HasRoomOnSchedule(const JobRecord& job) {
  const auto superseded = MakesRoomForImage(job);
  if (superseded.ok()) {
    without_room_.erase(job.id);
    GiveUpImages(*superseded);
    return true;
  }
  // Once: it is asked again at every tick.
  if (without_room_.insert(job.id).second)
    Record(job.id, Noted{absl::StrCat("is not checkpointed on schedule: ", superseded.status().message())});
  return false;
}

}  // namespace siding
