#include "controller/engine/decide/checkpoints.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/engine/state/predicates.h"
#include "model/checkpoint_interval.h"

namespace siding {
namespace {

constexpr double kSecondsPerYear = 365.25 * 86400;

}  // namespace

JobMoved Checkpoints::OrderDump(const JobRecord& job, Tier tier) const {
  JobMoved move;
  move.event = JobEvent::kOrderDump;
  move.checkpoint = CheckpointOf(job, job.checkpoint_count + 1);
  move.tier = tier;
  move.predicted = clock_.Now() + cluster_.TimeToDump(job, tier);
  return move;
}

JobMoved Checkpoints::OrderLeave(const JobRecord& job, Tier tier) const {
  JobMoved move = OrderDump(job, tier);
  move.notice = NoticeOf(job);
  move.predicted += move.notice;
  return move;
}

std::optional<Tier> Checkpoints::TierWithRoom(const JobRecord& job, Tier rather) const {
  if (tiers_.WhyNone(job, rather).empty()) return rather;
  const Tier other = rather == Tier::kShared ? Tier::kLocal : Tier::kShared;
  // It is to go on elsewhere, or may have to.
  if (other == Tier::kLocal && (!job.current.target.empty() || !manager_.WhyNotLocal(job).empty()))
    return std::nullopt;
  return tiers_.WhyNone(job, other).empty() ? std::optional(other) : std::nullopt;
}

bool Checkpoints::CheckpointOnSchedule(const JobRecord& job) {
  if (job.state != JobState::kRunning) return false;
  const Duration interval = CheckpointIntervalOf(job);
  if (interval == Duration(0)) return false;
  if (clock_.Now() - std::max(job.durable_at, job.state_since) < interval) return false;
  // It will be saved when it leaves, and must not be busy with another image then.
  if (LeavesWithin(job, interval)) return false;
  // All ranks are stopped until the last one has answered.
  const std::vector<int> ranks = cluster_.LiveRanks(job);
  if (!std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return cluster_.IsHeard(job.nodes[rank]); }))
    return false;
  const auto can = [&](Method m) { return Can(job, m); };
  JobMoved move;
  if (can(Method::kCheckpoint)) {
    if (!HasRoomOnSchedule(job) || !quota_.HasRoomOnSchedule(job)) return false;
    move = OrderDump(job, Tier::kShared);
  } else if (can(Method::kApp) && ContinuesAfterSave(*job.spec.app)) {
    move.event = JobEvent::kOrderSave;
    move.predicted = clock_.Now() + job.spec.app->grace;
  } else {
    return false;
  }
  move.keep_running = true;
  move.reason = absl::StrCat("on schedule, every ", FormatDuration(interval));
  recorder_.Move(job, std::move(move));
  return true;
}

void Checkpoints::ExpireCheckpoints(const JobRecord& job) {
  // An unfinished one: some ranks' images may be visible already, and nothing refers to them.
  const auto last = state_.checkpoints.find(CheckpointOf(job, job.checkpoint_count));
  const bool in_the_making = job.state == JobState::kDumping || job.state == JobState::kCommitting;
  if (last != state_.checkpoints.end() && last->second.state == CheckpointState::kBeingMade && !in_the_making)
    recorder_.Record(job.id,
                     CheckpointChanged{last->first, CheckpointState::kDeleted, "it was not finished"});
  const bool over = !manager_.KeepsImages(job);
  const size_t keep = over ? 0 : static_cast<size_t>(std::max(1, policy_.keep_checkpoints));
  while (job.checkpoints.size() > keep) {
    // Copied: recording takes it off the list.
    const CheckpointId oldest = job.checkpoints.front();
    const char* why = !over                            ? "newer ones are kept"
                      : job.state == JobState::kFailed ? "its job has failed, and that long ago"
                                                       : "its job has ended";
    recorder_.Record(job.id, CheckpointChanged{oldest, CheckpointState::kDeleted, why});
  }
}

// How often a checkpoint is made; 0: never. If siding chooses, it follows from the present cost of an image,
// so it changes with the job's memory and the bandwidths that the nodes measure.
Duration Checkpoints::CheckpointIntervalOf(const JobRecord& job) const {
  if (!job.spec.auto_checkpoint_interval) return job.spec.checkpoint_interval;
  if (policy_.node_failures_per_year <= 0) return Duration(0);
  Duration cost = job.spec.app ? job.spec.app->grace : Duration(0);
  if (Can(job, Method::kCheckpoint)) {
    cost = cluster_.TimeToDump(job, Tier::kShared);
  }
  if (cost <= Duration(0)) return Duration(0);
  const double mean_seconds = kSecondsPerYear / policy_.node_failures_per_year / job.spec.nodes;
  return CheckpointInterval(cost, FromSeconds(mean_seconds));
}

bool Checkpoints::HasRoomOnSchedule(const JobRecord& job) {
  const std::string why = tiers_.WhyNone(job, Tier::kShared);
  if (why.empty()) {
    without_room_.erase(job.id);
  } else if (without_room_.insert(job.id).second) {  // once: it is asked again at every tick
    recorder_.Record(job.id, Noted{absl::StrCat("is not checkpointed on schedule: ", why)});
  }
  return why.empty();
}

bool Checkpoints::LeavesWithin(const JobRecord& job, Duration time) const {
  const Time until = clock_.Now() + time;
  const auto& requests = state_.index.requests();
  return std::any_of(requests.begin(), requests.end(), [&](const auto& entry) {
    const JobRecord& request = *entry.second;
    if (!WaitsForItsNodes(request)) return false;
    const std::vector<PlanStep>& steps = request.plans.back().steps;
    return std::any_of(steps.begin(), steps.end(), [&](const PlanStep& step) {
      return step.job == job.id && !step.early && step.begin != Time{} && step.begin < until;
    });
  });
}

}  // namespace siding
