#include "controller/engine/decide/image_quota.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "controller/engine/state/image_copies.h"
#include "controller/engine/state/predicates.h"

namespace siding {
namespace {

constexpr size_t kMostNamed = 4;

// So many bytes must be freed. Advice that is not refused when it is followed.
std::string WhatCanBeDeleted(const std::vector<const CheckpointRecord*>& images, Bytes missing) {
  Bytes sum;
  std::string names;
  for (size_t i = 0; i < images.size(); ++i) {
    sum += images[i]->bytes;
    if (i < kMostNamed) absl::StrAppend(&names, i == 0 ? "" : ", ", images[i]->id.value());
  }
  if (sum < missing)
    return "all that can be deleted is not enough: each job that has not ended keeps its last";
  if (images.size() > kMostNamed) absl::StrAppend(&names, " and ", images.size() - kMostNamed, " more");
  return absl::StrCat("sidingctl checkpoints delete frees ", FormatBytes(sum), ": ", names);
}

}  // namespace

absl::StatusOr<std::vector<CheckpointId>> ImageQuota::MakesRoomFor(const Caller& caller,
                                                                   const JobRecord& job) const {
  const bool leaves_one = job.state == JobState::kRunning || job.state == JobState::kSuspended;
  if (caller.is_operator || !leaves_one || !Can(job, Method::kCheckpoint)) return std::vector<CheckpointId>();
  return MakesRoomForImage(job);
}

absl::StatusOr<std::vector<CheckpointId>> ImageQuota::MakesRoomForImage(const JobRecord& job) const {
  const Bytes most = policy_.max_image_bytes_per_user;
  std::vector<CheckpointId> superseded_ids;
  if (most <= Bytes{0}) return superseded_ids;
  Bytes used;
  // Images that nothing depends on because their jobs have newer ones.
  std::vector<const CheckpointRecord*> superseded, deletable;
  for (const auto& [id, checkpoint] : state_.checkpoints) {
    const auto owner = state_.jobs.find(checkpoint.job);
    if (owner == state_.jobs.end() || owner->second.spec.uid != job.spec.uid) continue;
    const JobRecord& its_job = owner->second;
    if (checkpoint.state == CheckpointState::kBeingMade) used += cluster_.ImageOf(its_job);
    if (IsWhole(checkpoint.state)) used += checkpoint.bytes;
    const std::vector<CheckpointId>& good = its_job.checkpoints;
    const bool is_older = std::find(good.begin(), good.end(), id) != good.end() && id != good.back();
    const bool in_use =
        IsRestoringFrom(its_job, id) || (is_older && OutlivesNodes(state_, its_job, checkpoint));
    const bool is_last = !good.empty() && id == good.back() && !IsTerminal(its_job.state);
    if (is_older && !in_use) {
      superseded.push_back(&checkpoint);
    } else if (IsWhole(checkpoint.state) && !is_last && !in_use) {
      deletable.push_back(&checkpoint);
    }
  }
  std::sort(superseded.begin(), superseded.end(),
            [](const auto* a, const auto* b) { return a->created < b->created; });
  const Bytes more = cluster_.ImageOf(job);
  Bytes left = used + more;
  for (const CheckpointRecord* checkpoint : superseded) {
    if (left <= most) break;
    left -= checkpoint->bytes;
    superseded_ids.push_back(checkpoint->id);
  }
  if (left <= most) return superseded_ids;
  return absl::ResourceExhaustedError(absl::StrCat(
      "the checkpoints of ", job.spec.user, " take ", FormatBytes(used), ", this one would take about ",
      FormatBytes(more), ", and the policy allows ", FormatBytes(most), " (max_image_bytes_per_user); ",
      WhatCanBeDeleted(deletable, left - most)));
}

void ImageQuota::GiveUpImages(const std::vector<CheckpointId>& ids) {
  for (const CheckpointId& id : ids) {
    const JobId job = state_.checkpoints.at(id).job;
    recorder_.Record(job,
                     CheckpointChanged{id, CheckpointState::kDeleted, "its user's newer ones need the room"});
  }
}

bool ImageQuota::HasRoomOnSchedule(const JobRecord& job) {
  const auto superseded = MakesRoomForImage(job);
  if (superseded.ok()) {
    without_room_.erase(job.id);
    GiveUpImages(*superseded);
    return true;
  }
  // Once: it is asked again at every tick.
  if (without_room_.insert(job.id).second)
    recorder_.Record(job.id,
                     Noted{absl::StrCat("is not checkpointed on schedule: ", superseded.status().message())});
  return false;
}

}  // namespace siding
