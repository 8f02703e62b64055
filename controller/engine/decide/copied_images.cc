#include "controller/engine/decide/copied_images.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "controller/engine/state/image_copies.h"
#include "controller/engine/state/predicates.h"

namespace siding {
namespace {

// It reads its image, or writes a new one that will take its place.
bool IsBusy(const JobRecord& job) {
  return job.state != JobState::kParked && job.state != JobState::kRunning &&
         job.state != JobState::kSuspended;
}

bool IsWrittenToShared(const JobRecord& job) {
  return job.state == JobState::kDumping && job.current.tier == Tier::kShared;
}

// Those that wait for nodes before those that run; the longest first.
bool IsBefore(const JobRecord& a, const JobRecord& b) {
  const bool a_waits = a.state == JobState::kParked, b_waits = b.state == JobState::kParked;
  return a_waits != b_waits ? a_waits : a.state_since < b.state_since;
}

}  // namespace

std::vector<WantedCopy> CopiedImages::ToCopy() const {
  if (!policy_.copy_images || IsStartingUp()) return {};
  std::vector<std::pair<const JobRecord*, const CheckpointRecord*>> found;
  const bool any_under_way = IsAnyCopyUnderWay(state_);
  for (const auto& [id, job] : state_.unfinished) {
    if (const CheckpointRecord* image = CopyOf(*job, any_under_way)) found.emplace_back(job, image);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return IsBefore(*a.first, *b.first); });
  const TierRoom::UnderWay under_way = tiers_.ToBeWritten();
  Bytes added;
  std::vector<WantedCopy> wanted;
  for (const auto& [job, image] : found) {
    if (CopiesUnderWay(state_, *image).empty()) {
      // As much again is left to those that write there for a deadline.
      if (RoomFor(*image, under_way) < added + image->bytes + image->bytes) continue;
      added += image->bytes;
    }
    wanted.push_back({image->id, BaseOf(*job)});
  }
  return wanted;
}

// Who is there, and what they have, is not known yet.
bool CopiedImages::IsStartingUp() const {
  const Time now = clock_.Now();
  return now < startup_.agents_back_at || startup_.IsCatchingUp(now);
}

bool CopiedImages::MustWait() const {
  const auto& unsettled = state_.index.unsettled();
  const bool some = std::any_of(unsettled.begin(), unsettled.end(), [](const auto& entry) {
    return IsWrittenToShared(*entry.second) && entry.second->current.request != JobId();
  });
  return some || IsImageInAdvanceWritten();
}

// By a plan for a request that arrives later.
bool CopiedImages::IsImageInAdvanceWritten() const {
  for (const auto& [id, request] : state_.index.requests()) {
    if (!WaitsForItsNodes(*request)) continue;
    for (const PlanStep& step : request->plans.back().steps) {
      const auto job = state_.jobs.find(step.job);
      if (step.early && job != state_.jobs.end() && IsWrittenToShared(job->second)) return true;
    }
  }
  return false;
}

const CheckpointRecord* CopiedImages::CopyOf(const JobRecord& job, bool any_under_way) const {
  const CheckpointRecord* const newest = NewestImage(state_, job);
  if (newest == nullptr) return nullptr;
  // One that waits for its nodes continues from the newest.
  const bool wants_newest = job.state == JobState::kParked && newest->tier == Tier::kLocal;
  const CheckpointRecord* const begun = wants_newest || !any_under_way ? nullptr : UnderWay(job);
  if (begun != nullptr) return begun;
  if (newest->tier != Tier::kLocal) return nullptr;
  if (IsBusy(job) || IsTooSoon(job, *newest)) return nullptr;
  for (int rank = 0; rank < static_cast<int>(newest->nodes.size()); ++rank) {
    const NodeId& node = newest->nodes[rank];
    if (newest->exited.contains(rank)) continue;
    const bool has_tier = cluster_.HasSharedTier(node) && tiers_.ProblemOf(node, Tier::kShared).empty();
    if (!cluster_.IsHeard(node) || !has_tier) return nullptr;
  }
  return newest;
}

const CheckpointRecord* CopiedImages::UnderWay(const JobRecord& job) const {
  for (const CheckpointId& id : UsableImages(state_, job)) {
    const CheckpointRecord& image = state_.checkpoints.at(id);
    if (image.tier == Tier::kLocal && !CopiesUnderWay(state_, image).empty()) return &image;
  }
  return nullptr;
}

bool CopiedImages::IsTooSoon(const JobRecord& job, const CheckpointRecord& image) const {
  if (job.state == JobState::kParked || !schedule_.HasOne(job)) return false;
  const auto base = state_.checkpoints.find(BaseOf(job));
  // Or it is of an earlier life of the job.
  if (base == state_.checkpoints.end() || base->second.incarnation <= job.begun_after) return false;
  return clock_.Now() - base->second.created < schedule_.CopyInterval(job, image, base->second);
}

// In shared storage, as its nodes see it.
Bytes CopiedImages::RoomFor(const CheckpointRecord& image, const TierRoom::UnderWay& under_way) const {
  Bytes free = kUnlimited;
  for (int rank = 0; rank < static_cast<int>(image.nodes.size()); ++rank) {
    if (!image.exited.contains(rank))
      free = std::min(free, tiers_.Free(image.nodes[rank], Tier::kShared, under_way));
  }
  return free;
}

CheckpointId CopiedImages::BaseOf(const JobRecord& job) const {
  const auto base =
      std::find_if(job.checkpoints.rbegin(), job.checkpoints.rend(),
                   [&](const CheckpointId& id) { return state_.checkpoints.at(id).tier == Tier::kShared; });
  return base == job.checkpoints.rend() ? CheckpointId() : *base;
}

void CopiedImages::Expire() {
  if (state_.copied.empty() || IsStartingUp()) return;
  // Copied: what is recorded changes the list.
  const std::set<CheckpointId> copied = state_.copied;
  largest_on_.clear();
  const TierRoom::UnderWay under_way = tiers_.ToBeWritten();
  for (const CheckpointId& id : copied) {
    const CheckpointRecord& image = state_.checkpoints.at(id);
    if (image.copies != NodeCopies::kUsed) continue;
    const std::string why = WhyUnwanted(image, state_.jobs.at(image.job), under_way);
    if (!why.empty()) recorder_.Record(image.job, CopiesChanged{id, NodeCopies::kUnwanted, why});
  }
}

std::string CopiedImages::WhyUnwanted(const CheckpointRecord& image, const JobRecord& job,
                                      const TierRoom::UnderWay& under_way) {
  // With one that does not count they are kept, or deleted, as it is.
  if (image.state != CheckpointState::kGood || IsRestoringFrom(job, image.id)) return "";
  if (job.ended) return "its job has ended";
  if (job.checkpoints.empty() || job.checkpoints.back() != image.id) return "there is a newer one";
  for (int rank = 0; rank < static_cast<int>(image.nodes.size()); ++rank) {
    const NodeId& node = image.nodes[rank];
    if (image.exited.contains(rank) || !cluster_.IsHeard(node)) continue;
    // Nothing: its agent has not said yet, or the tier is away.
    const Bytes free = tiers_.Free(node, Tier::kLocal, under_way);
    if (free > Bytes{0} && (free < image.PartOfRank() || free < LargestOn(node)))
      return absl::StrCat("the local tier of node ", node.value(), " is nearly full");
  }
  return "";
}

Bytes CopiedImages::LargestOn(const NodeId& node) {
  const auto [known, is_new] = largest_on_.try_emplace(node);
  if (!is_new) return known->second;
  for (const auto& [id, rank] : state_.index.On(node)) {
    const JobRecord& job = *state_.unfinished.at(id);
    if (!job.exited.contains(rank)) known->second = std::max(known->second, cluster_.ImageOf(job, rank));
  }
  return known->second;
}

}  // namespace siding
