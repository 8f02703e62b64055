#include "controller/engine/state/tier_room.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "controller/engine/state/predicates.h"

namespace siding {
namespace {

// An image of it is being written.
bool IsWritten(const JobRecord& job) {
  return job.state == JobState::kDumping || job.state == JobState::kCommitting;
}

// Or is to be when it is frozen.
bool IsOrdered(const JobRecord& job) {
  return IsWritten(job) || (IsDumpedFrozen(job) && job.displaced_by != JobId());
}

// What is written of an image shows in what is free.
Bytes LeftToWrite(const JobRecord& job, const TaskSeen& seen, Bytes image) {
  if (seen.phase() == v1::PREPARED) return Bytes{0};
  if (seen.phase() != v1::DUMPING) return job.state == JobState::kCommitting ? Bytes{0} : image;
  return seen.progress ? std::max(Bytes{0}, image - Bytes{seen.progress->bytes_done()}) : image;
}

}  // namespace

TierRoom::UnderWay TierRoom::ToBeWritten() const { return Sum(IsOrdered); }

TierRoom::UnderWay TierRoom::Sum(const std::function<bool(const JobRecord&)>& counts) const {
  UnderWay under_way{LeftToCopy(), {}};
  for (const auto& [id, job] : state_.index.unsettled()) {
    if (!counts(*job)) continue;
    for (int rank : cluster_.LiveRanks(*job)) {
      const Bytes left = LeftToWrite(*job, cluster_.Seen(*job, rank), cluster_.ImageOf(*job, rank));
      (job->current.tier == Tier::kShared ? under_way.shared : under_way.local[job->nodes[rank]]) += left;
    }
  }
  return under_way;
}

Bytes TierRoom::LeftToCopy() const {
  // No honest agents say more.
  constexpr Bytes kMost{int64_t{1} << 60};
  Bytes left;
  for (const NodeId& node : state_.copying) {
    const ObservedNode& observed = state_.observed_nodes.at(node);
    if (!observed.connected) continue;
    for (const v1::ImageCopy& copy : observed.heartbeat.copies()) {
      const auto image = state_.checkpoints.find(CheckpointId(copy.checkpoint()));
      // Before it has begun, its agent does not know how much is to be written.
      const Bytes all = copy.bytes_total() > 0              ? Bytes{copy.bytes_total()}
                        : image == state_.checkpoints.end() ? Bytes{0}
                                                            : image->second.PartOfRank();
      left = std::min(kMost, left + std::max(Bytes{0}, all - Bytes{copy.bytes_done()}));
    }
  }
  return left;
}

Bytes TierRoom::Free(const NodeId& node, Tier tier, const UnderWay& under_way) const {
  const auto observed = state_.observed_nodes.find(node);
  if (observed == state_.observed_nodes.end()) return Bytes{0};
  const v1::Heartbeat& said = observed->second.heartbeat;
  if (tier == Tier::kShared) return std::max(Bytes{0}, Bytes{said.shared_disk_free()} - under_way.shared);
  const auto local = under_way.local.find(node);
  return std::max(
      Bytes{0}, Bytes{said.local_disk_free()} - (local == under_way.local.end() ? Bytes{0} : local->second));
}

std::string TierRoom::ProblemOf(const NodeId& node, Tier tier) const {
  const auto observed = state_.observed_nodes.find(node);
  if (observed == state_.observed_nodes.end()) return "";
  const auto failed = observed->second.failed_tiers.find(tier);
  if (failed == observed->second.failed_tiers.end()) return "";
  const Time again = failed->second.last + PauseAfter(failed->second.failures);
  if (observed->second.last_beat >= again) return "";
  return absl::StrCat("it did not take its last image, and is tried again at ", FormatTime(again), ": ",
                      failed->second.why);
}

bool TierRoom::IsInDoubt(const JobRecord& job, Tier tier) const {
  return std::any_of(job.nodes.begin(), job.nodes.end(),
                     [&](const NodeId& node) { return !ProblemOf(node, tier).empty(); });
}

std::string TierRoom::WhyNone(const JobRecord& job, Tier tier) const {
  std::map<NodeId, Bytes> needed;
  Bytes in_all;
  for (int rank : cluster_.LiveRanks(job)) {
    needed[job.nodes[rank]] += cluster_.ImageOf(job, rank);
    in_all += cluster_.ImageOf(job, rank);
  }
  // One that is only to be written later waits for room, and must not wait for one that waits for it.
  const UnderWay under_way =
      Sum([&](const JobRecord& other) { return other.id != job.id && IsWritten(other); });
  for (const auto& [node, bytes] : needed) {
    std::string why = WhyNoRoom(tier, node, Free(node, tier, under_way),
                                tier == Tier::kShared ? in_all : bytes, ProblemOf(node, tier));
    if (!why.empty()) return why;
  }
  return "";
}

}  // namespace siding
