#include "controller/engine/decide/recovery.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/logging.h"
#include "controller/engine/state/image_copies.h"
#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"

namespace siding {
namespace {

// Attempts to start a cluster manager's job where only the nodes were to blame: they are not siding's to
// choose.
constexpr int kStartAttempts = 5;
// What is missing outside of an image may be back after this; an operator may have to bring it back first.
// Each attempt reads the whole image.
constexpr Duration kOutsidePause = std::chrono::minutes(1);
constexpr Duration kLongOutsidePause = std::chrono::minutes(10);
// Nodes on which an image is tried in a row before the pause: one that fails on three of them will hardly be
// restored on the hundredth.
constexpr size_t kNodesInARow = 3;

// Of an image that no restore will take: refused so often, for so long, and by another node, too, or for so
// long by the only one. One node may have a fault that looks like it, and what it was may pass.
constexpr int kRefusals = 5;
constexpr size_t kRefusingNodes = 2;
constexpr Duration kRefusedFor = std::chrono::minutes(10);
constexpr Duration kRefusedByOneFor = std::chrono::hours(1);

// Nodes that refused the same rank's part: the most of any.
size_t NodesThatRefused(const Recovery::Refusals& refusals) {
  size_t most = 0;
  for (const auto& [rank, nodes] : refusals.by) most = std::max(most, nodes.size());
  return most;
}

bool IsForGood(const Recovery::Refusals& refusals, Time now) {
  const Duration least = NodesThatRefused(refusals) >= kRefusingNodes ? kRefusedFor : kRefusedByOneFor;
  return refusals.count >= kRefusals && now - refusals.first >= least;
}

// It may be tried on another one before the next round.
bool HasOtherNodes(const Recovery::Retry& retry) { return retry.tried.size() < kNodesInARow; }

// After so many rounds without success.
Duration PauseAfterRound(int rounds, bool outside) {
  if (outside) return rounds <= 1 ? kOutsidePause : kLongOutsidePause;
  return rounds <= kPauseDoublings + 1 ? PauseAfter(rounds) : kLongOutsidePause;
}

}  // namespace

void Recovery::StartFailed(const JobRecord& job, int rank, const v1::TaskReport& report) {
  const std::string why = absl::StrCat(On(job, rank), ": ", report.error());
  if (job.state == JobState::kRestoring) return SavedStartFailed(job, rank, report, why);
  const int failures = job.start_failures;
  const bool own = OwnershipOf(job.spec).siding_starts;
  if (report.node_problem() && own) {
    // Its plan may give it the same node again: not at once.
    if (IsRequest(job) && failures > 0) Pause(job, failures - 1);
    const Retry& retry = NoteTried(job, rank, false);
    return StartOver(job, absl::StrCat(why, "; tried again at ", FormatTime(retry.at),
                                       HasOtherNodes(retry) ? ", or elsewhere before" : ""));
  }
  if (report.node_problem()) {
    Pause(job, failures);
    if (failures + 1 < kStartAttempts) return StartOver(job, why);
  }
  const bool has_run = job.first_started && own;
  // It has run before, with the same command: its folder may be away for a moment.
  if (report.outside_problem() && has_run) {
    Pause(job, failures);
    return StartOver(job, why);
  }
  recorder_.Move(job, Moved(JobEvent::kStartFailed, why));
}

// It was to continue from what its program saved. Like an image, that is not given up because of a node or
// of its surroundings.
void Recovery::SavedStartFailed(const JobRecord& job, int rank, const v1::TaskReport& report,
                                const std::string& why) {
  if (report.node_problem()) return FallBack(job, why + RetryElsewhereOrLater(job, rank, /*outside=*/false));
  const bool has_image = NewestImage(state_, job) != nullptr && job.current.checkpoint == CheckpointId();
  if (report.outside_problem() || (!has_image && !(MayStartOver(job) && MayStartOverAfterLoss(job))))
    return FallBack(job, why + RetryElsewhereOrLater(job, rank, report.outside_problem()));
  FallBackBehindSave(job, why);
}

void Recovery::RestoreFailed(const JobRecord& job, int rank, const v1::TaskReport& report) {
  std::string why = absl::StrCat(On(job, rank), ": ", report.error());
  const CheckpointId checkpoint = job.current.checkpoint;
  if (report.no_gpu() || report.no_key()) {
    not_before_[job.id] = clock_.Now() + kLackPause;
  } else if (HasReadCopy(job, rank) && report.image_damaged()) {
    // The one in shared storage is tried at once.
    recorder_.Record(job.id, CopiesChanged{checkpoint, NodeCopies::kUnwanted, why});
  } else if (report.image_damaged()) {
    // If others read it all the same it is the node that is damaged.
    if (checkpoint != CheckpointId() && GoesBackToNodes(state_.checkpoints.at(checkpoint), why))
      why += RetryElsewhereOrLater(job, rank, /*outside=*/false);
    else if (checkpoint != CheckpointId())
      recorder_.Record(job.id, CheckpointChanged{checkpoint, CheckpointState::kDamaged, why});
  } else if (const Refusals* refusals = report.image_refused() ? CountRefusal(job, rank) : nullptr;
             refusals != nullptr && IsForGood(*refusals, clock_.Now())) {
    const size_t nodes = NodesThatRefused(*refusals);
    absl::StrAppend(&why, "; refused ", refusals->count, " times since ", FormatTime(refusals->first), " by ",
                    nodes == 1 ? "its node" : absl::StrCat(nodes, " nodes"));
    recorder_.Record(job.id, CheckpointChanged{checkpoint, CheckpointState::kRefused, why});
    retries_.erase(job.id);
  } else {
    why += RetryElsewhereOrLater(job, rank, report.outside_problem());
  }
  FallBack(job, why);
}

// Its image on the node's own disk, of which there is another in shared storage. Where a cluster manager has
// started it, its agent has chosen between the two.
bool Recovery::HasReadCopy(const JobRecord& job, int rank) const {
  const auto image = state_.checkpoints.find(job.current.checkpoint);
  return image != state_.checkpoints.end() && OwnershipOf(job.spec).siding_starts &&
         ReadsCopy(state_, image->second, job.nodes[rank], rank);
}

bool Recovery::GoesBackToNodes(const CheckpointRecord& checkpoint, const std::string& why) {
  if (checkpoint.copies != NodeCopies::kUsed) return false;
  for (int rank = 0; rank < static_cast<int>(checkpoint.nodes.size()); ++rank) {
    if (!checkpoint.exited.contains(rank) && state_.IsLost(checkpoint.nodes[rank])) return false;
  }
  recorder_.Record(checkpoint.job, CopiesChanged{checkpoint.id, NodeCopies::kAlone, why});
  return true;
}

JobMoved Recovery::BackToWhatIsSaved(const JobRecord& job, const std::string& why) const {
  JobMoved move = Moved(JobEvent::kRestoreFailed, why);
  move.nodes = cluster_.WhereTasksMayLive(job);
  move.interrupted = job.state != JobState::kRestoring && job.state != JobState::kParked;
  return move;
}

void Recovery::FallBack(const JobRecord& job, const std::string& why) {
  const bool saved = ResumptionOf(state_, job) != Resumption::kBeginning;
  // A start that did not come to its end is made again.
  if (job.state == JobState::kStarting || (!saved && MayStartOverAfterLoss(job))) return StartOver(job, why);
  JobMoved move = BackToWhatIsSaved(job, why);
  if (!saved) move.reason += HowToStartOver(job);
  if (!saved && !RefusedImagesOf(state_, job).empty())
    absl::StrAppend(&move.reason, ", or, to try once more what was refused: sidingctl resume ",
                    job.id.value());
  recorder_.Move(job, std::move(move));
}

// It does not continue from what the program saved; it may from an older image.
void Recovery::FallBackBehindSave(const JobRecord& job, const std::string& why) {
  if (NewestImage(state_, job) == nullptr || job.current.checkpoint != CheckpointId())
    return StartOver(job, why);
  JobMoved move = BackToWhatIsSaved(job, why);
  move.without_save = true;
  recorder_.Move(job, std::move(move));
}

void Recovery::StartOver(const JobRecord& job, const std::string& why, const std::string& by) {
  if (job.first_started && job.state != JobState::kStarting)
    spdlog::warn("job {} is started from the beginning: {}", job.id.value(), why);
  if (job.state != JobState::kStarting) retries_.erase(job.id);
  JobMoved move = Moved(JobEvent::kRestartNeeded, why);
  move.by = by;
  move.nodes = cluster_.WhereTasksMayLive(job);
  recorder_.Move(job, std::move(move));
}

bool Recovery::TakeRefusedBack(const JobRecord& job, const std::string& by) {
  const std::vector<CheckpointId> refused = RefusedImagesOf(state_, job);
  for (const CheckpointId& id : refused)
    recorder_.Record(job.id, CheckpointChanged{id, CheckpointState::kGood,
                                               absl::StrCat("to be tried once more: ", AskedForBy(by)), by});
  return !refused.empty();
}

bool Recovery::NeedsDecision(const JobRecord& job) const {
  return job.state == JobState::kParked && OwnershipOf(job.spec).siding_starts &&
         ResumptionOf(state_, job) == Resumption::kBeginning;
}

bool Recovery::MustWait(const JobRecord& job) const {
  const std::optional<Time> until = HeldBackUntil(job.id);
  return job.held || (until && clock_.Now() < *until) || NeedsDecision(job) || WaitsForNextRound(job) ||
         cluster_.HasLeftTasks(job) || IsLookedFor(job);
}

// Its image is missing on a node, which is asked whether it is in shared storage: it would be restored in
// vain.
bool Recovery::IsLookedFor(const JobRecord& job) const {
  const CheckpointRecord* const newest = NewestImage(state_, job);
  if (newest == nullptr) return false;
  const auto missing = state_.missing_images.lower_bound({newest->id, 0});
  return missing != state_.missing_images.end() && missing->first.first == newest->id &&
         clock_.Now() < missing->second + kLookPatience;
}

const std::set<NodeId>* Recovery::NotOn(const JobRecord& job) const {
  const auto retry = retries_.find(job.id);
  return retry == retries_.end() || clock_.Now() >= retry->second.at ? nullptr : &retry->second.tried;
}

bool Recovery::WaitsForNextRound(const JobRecord& job) const {
  const std::set<NodeId>* tried = NotOn(job);
  return tried != nullptr && !HasOtherNodes(retries_.at(job.id));
}

void Recovery::RegainMethods() {
  std::vector<std::pair<JobId, Method>> due;
  for (const auto& [id, job] : state_.unfinished) {
    if (job->in_ram) continue;  // it is not to run for a moment every time
    for (const auto& [method, at] : job->methods_back_at) {
      if (at <= clock_.Now()) due.push_back({id, method});
    }
  }
  for (const auto& [id, method] : due) recorder_.Record(id, MethodRegained{method});
}

std::optional<Time> Recovery::HeldBackUntil(JobId job) const {
  const auto until = not_before_.find(job);
  return until == not_before_.end() ? std::nullopt : std::optional(until->second);
}

void Recovery::Pause(const JobRecord& job, int failures) {
  not_before_[job.id] = clock_.Now() + PauseAfter(failures + 1);
}

// Null: it is not tried again by this controller, which says nothing of its image then.
const Recovery::Refusals* Recovery::CountRefusal(const JobRecord& job, int rank) {
  if (job.current.checkpoint == CheckpointId() || !OwnershipOf(job.spec).siding_starts) return nullptr;
  Refusals& refusals = retries_[job.id].refusals;
  if (refusals.of != job.current.checkpoint) refusals = {job.current.checkpoint, 0, clock_.Now(), {}};
  ++refusals.count;
  refusals.by[rank].insert(job.nodes[rank]);
  return &refusals;
}

// The rank's node is left out until the next round.
const Recovery::Retry& Recovery::NoteTried(const JobRecord& job, int rank, bool outside) {
  Retry& retry = retries_[job.id];
  const Time now = clock_.Now();
  if (now >= retry.at) {
    retry.tried.clear();
    retry.at = now + PauseAfterRound(++retry.rounds, outside);
  }
  retry.tried.insert(job.nodes[rank]);
  return retry;
}

// Says what is done, for its owner.
std::string Recovery::RetryElsewhereOrLater(const JobRecord& job, int rank, bool outside) {
  if (!OwnershipOf(job.spec).siding_starts) return "; its work is kept";
  const Retry& retry = NoteTried(job, rank, outside);
  return absl::StrCat(
      "; its work is kept, next try at ", FormatTime(retry.at),
      HasOtherNodes(retry) ? ", or elsewhere before" : "", "; when that is put right: sidingctl resume ",
      job.id.value(),
      outside ? absl::StrCat(", or, from the beginning: sidingctl restart ", job.id.value()) : "");
}

}  // namespace siding
