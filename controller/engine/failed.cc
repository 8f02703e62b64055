// Starts and restores that failed: what is tried again, when and where, and what is never done unasked.
//
// An image is given up for one reason only: its checksums say that it is not what was written. It has been
// read and compared before each restore, so any other failure is one of the world around it: a file of the
// job that is missing, a file system that is away, a port in use, a node. Such an image is kept, and tried
// again.
//
// A job that did not allow kill is not started from the beginning unless somebody says so.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "controller/engine/impl.h"

namespace siding {
namespace {

// Attempts to start a job where only the nodes were to blame.
constexpr int kStartAttempts = 5;
// What went wrong on a node may be over after this.
constexpr Duration kPause = std::chrono::seconds(1);
constexpr Duration kLongestPause = std::chrono::minutes(1);
constexpr int kDoublings = 6;  // from one to the other
// A node that had no GPU for a job, or not the image's key, may have it after this, or another node may be
// free.
constexpr Duration kLackPause = std::chrono::seconds(10);
// What is missing outside of an image may be back after this; somebody may have to bring it back first. Each
// attempt reads the whole image.
constexpr Duration kOutsidePause = std::chrono::minutes(1);
constexpr Duration kLongOutsidePause = std::chrono::minutes(10);
// Nodes on which an image is tried in a row before the pause: one that fails on three of them will hardly be
// restored on the hundredth.
constexpr size_t kNodesInARow = 3;

// After so many rounds in vain.
Duration PauseAfterRound(int rounds, bool outside) {
  if (outside) return rounds <= 1 ? kOutsidePause : kLongOutsidePause;
  return rounds <= kDoublings + 1 ? PauseAfter(rounds) : kLongOutsidePause;
}

}  // namespace

Duration PauseAfter(int failures) {
  return std::min(kPause * (1 << std::clamp(failures - 1, 0, kDoublings)), kLongestPause);
}

void Engine::Impl::Pause(const JobRecord& job, int failures) {
  not_before_[job.id] = clock_.Now() + PauseAfter(failures + 1);
}

// Nothing of it has run yet, or its user has said that its work may be given up. A cluster manager starts its
// jobs as it likes.
bool Engine::Impl::MayStartOver(const JobRecord& job) const {
  return IsHosted(job) || !job.first_started || job.spec.methods.Has(Method::kKill);
}

// It is parked, and there is nothing that it could go on from: somebody has to say what is to become of it.
bool Engine::Impl::NeedsAWord(const JobRecord& job) const {
  return job.state == JobState::kParked && !IsHosted(job) &&
         ResumptionOf(state_, job) == Resumption::kBeginning;
}

std::string Engine::Impl::HowToStartOver(const JobRecord& job) {
  return absl::StrCat(
      "; nothing is left to go on from, and it does not allow kill: to start it from the beginning, "
      "say sidingctl restart ",
      job.id.value());
}

// Where it is not to be tried for now; null: anywhere.
const std::set<NodeId>* Engine::Impl::NotOn(const JobRecord& job) const {
  const auto retry = retries_.find(job.id);
  return retry == retries_.end() || clock_.Now() >= retry->second.at ? nullptr : &retry->second.tried;
}

bool Engine::Impl::WaitsForItsRound(const JobRecord& job) const {
  const std::set<NodeId>* tried = NotOn(job);
  return tried != nullptr && tried->size() >= kNodesInARow;
}

// Says what is done, for its owner.
std::string Engine::Impl::TryElsewhereOrLater(const JobRecord& job, int rank, bool outside) {
  if (IsHosted(job)) return "; its work is kept";
  Retry& retry = retries_[job.id];
  const Time now = clock_.Now();
  if (now >= retry.at) {
    retry.tried.clear();
    retry.at = now + PauseAfterRound(++retry.rounds, outside);
  }
  retry.tried.insert(job.nodes[rank]);
  const bool elsewhere = retry.tried.size() < kNodesInARow;
  return absl::StrCat("; its work is kept, next try at ", FormatTime(retry.at),
                      elsewhere ? ", or elsewhere before" : "", "; when that is put right: sidingctl resume ",
                      job.id.value());
}

// What the job asked for cannot be done, or a node could not do it: then it is tried again.
void Engine::Impl::StartFailed(JobRecord& job, int rank, const v1::TaskReport& report) {
  const std::string why = absl::StrCat(On(job, rank), ": ", report.error());
  if (job.state == JobState::kRestoring) return SavedStartFailed(job, rank, report, why);
  const int failures = job.start_failures;
  if (report.node_problem()) Pause(job, failures);
  const bool has_run = job.first_started && !IsHosted(job);
  if (report.node_problem() && (has_run || failures + 1 < kStartAttempts)) return StartAnew(job, why);
  // It has run before, with the same command: its folder may be away for a moment.
  if (report.outside_problem() && has_run) {
    Pause(job, failures);
    return StartAnew(job, why);
  }
  Move(job, Moved(JobEvent::kStartFailed, why));
}

// It was to go on from what its program saved. That is not given up because of nodes or of what is around it,
// as an image is not.
void Engine::Impl::SavedStartFailed(JobRecord& job, int rank, const v1::TaskReport& report,
                                    const std::string& why) {
  if (report.node_problem()) {
    Pause(job, job.restore_failures);
    return FallBack(job, why);
  }
  const bool has_image = NewestImage(state_, job) != nullptr && job.current.checkpoint == CheckpointId();
  if (report.outside_problem() || (!has_image && !MayStartOver(job)))
    return FallBack(job, why + TryElsewhereOrLater(job, rank, report.outside_problem()));
  FallBackBehindSave(job, why);
}

// From what the program saved itself it does not go on; from an older image it may.
void Engine::Impl::FallBackBehindSave(JobRecord& job, const std::string& why) {
  if (NewestImage(state_, job) == nullptr || job.current.checkpoint != CheckpointId())
    return StartAnew(job, why);
  JobMoved move = Moved(JobEvent::kRestoreFailed, why);
  move.nodes = WhereTasksMayLive(job);
  move.without_save = true;
  Move(job, std::move(move));
}

void Engine::Impl::RestoreFailed(JobRecord& job, int rank, const v1::TaskReport& report) {
  std::string why = absl::StrCat(On(job, rank), ": ", report.error());
  const CheckpointId checkpoint = job.current.checkpoint;
  if (report.no_gpu() || report.no_key()) {
    not_before_[job.id] = clock_.Now() + kLackPause;
  } else if (report.image_damaged()) {
    if (checkpoint != CheckpointId()) Record(job.id, CheckpointChanged{checkpoint, "damaged", why});
  } else if (report.node_problem()) {
    Pause(job, job.restore_failures);
  } else {
    why += TryElsewhereOrLater(job, rank, report.outside_problem());
  }
  FallBack(job, why);
}

// Back to the newest checkpoint that is good, or what the program saved; to the beginning only if it may.
void Engine::Impl::FallBack(JobRecord& job, const std::string& why) {
  const bool saved = ResumptionOf(state_, job) != Resumption::kBeginning;
  // A start that did not come to its end is made again.
  if (job.state == JobState::kStarting || (!saved && MayStartOver(job))) return StartAnew(job, why);
  JobMoved move = Moved(JobEvent::kRestoreFailed, why);
  if (!saved) move.reason += HowToStartOver(job);
  move.nodes = WhereTasksMayLive(job);
  Move(job, std::move(move));
}

void Engine::Impl::StartAnew(JobRecord& job, const std::string& why) {
  if (job.first_started && job.state != JobState::kStarting)
    spdlog::warn("job {} is started from the beginning: {}", job.id.value(), why);
  retries_.erase(job.id);
  JobMoved move = Moved(JobEvent::kRestartNeeded, why);
  move.nodes = WhereTasksMayLive(job);
  Move(job, std::move(move));
}

// Those whose ranks have not been seen gone. That an agent knows nothing of a task says so, unless the order
// to start it may still be on its way. What an operator says of a node does not: it may come back after all.
std::vector<NodeId> Engine::Impl::WhereTasksMayLive(const JobRecord& job) const {
  const bool starting = StartIsOnItsWay(job);
  std::vector<NodeId> nodes;
  if (!HoldsNodes(job.state)) return nodes;
  for (int rank : LiveRanks(job)) {
    const ObservedTask* task = TaskOn(job.nodes[rank], TaskOf(job, rank));
    const bool gone = task != nullptr && IsGone(task->report.phase());
    const bool never_there = task == nullptr && !starting && IsConnected(job.nodes[rank]);
    if (!gone && !never_there) nodes.push_back(job.nodes[rank]);
  }
  return nodes;
}

}  // namespace siding
