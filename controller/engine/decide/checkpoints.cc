#include "controller/engine/decide/checkpoints.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/engine/state/image_copies.h"
#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"

namespace siding {
namespace {

// What is not due is looked at again after that at the latest: its costs, or the policy, may have changed.
constexpr Duration kAskAgain = std::chrono::seconds(10);
// At once: a quarter of the nodes' number, and no less than that; and no more than the shared tier takes in a
// minute, and no less than some.
constexpr size_t kAtOnce = 16, kAtOnceOfAnySize = 4;
constexpr double kSecondsOfTier = 60;

std::string EveryText(const ChosenInterval& every, Tier tier) {
  std::string text = absl::StrCat("on schedule, every ", FormatDuration(every.interval));
  switch (every.bound) {
    case ChosenInterval::Bound::kNone:
      break;
    case ChosenInterval::Bound::kTime:
      absl::StrAppend(&text, "; more often is not possible");
      break;
    case ChosenInterval::Bound::kStop:
      absl::StrAppend(&text, "; more often would stop it for too long");
      break;
    case ChosenInterval::Bound::kBandwidth:
      absl::StrAppend(&text, "; more often would take too much of the ", ToString(tier), " tier's bandwidth");
      break;
    case ChosenInterval::Bound::kFailures:
      absl::StrAppend(&text, "; the last have failed");
      break;
  }
  return text;
}

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

JobMoved Checkpoints::OrderImage(const JobRecord& job, Tier tier) const {
  JobMoved move = OrderDump(job, tier);
  move.keep_running = true;
  move.others_follow = schedule_.HasOne(job);
  return move;
}

std::vector<JobId> Checkpoints::CheckpointOnSchedule() {
  // Who is there is not known yet.
  const Time now = clock_.Now();
  if (now < startup_.agents_back_at || startup_.IsCatchingUp(now)) return {};
  std::vector<Due> due;
  UnderWay under_way;
  for (const auto& [id, job] : state_.unfinished) {
    if (IsBeingImaged(*job)) under_way.Add(SharedBytesOfNext(*job));
    if (auto one = IfDue(*job)) due.push_back(*one);
  }
  std::stable_sort(due.begin(), due.end(), [](const Due& a, const Due& b) { return a.late > b.late; });
  const size_t most = std::max(kAtOnce, state_.observed_nodes.size() / 4);
  const double bytes = schedule_.TierBandwidth() * kSecondsOfTier;
  Duration held_back{0};
  std::vector<JobId> ordered;
  for (const Due& one : due) {
    const bool is_too_much = bytes > 0 && under_way.count >= kAtOnceOfAnySize &&
                             static_cast<double>(under_way.bytes.value) >= bytes;
    if (under_way.count >= most || is_too_much) {
      held_back = one.late;
      break;
    }
    if (!Order(one)) continue;
    under_way.Add(SharedBytesOfNext(*one.job));
    ordered.push_back(one.job->id);
  }
  schedule_.NoteLate(held_back);
  return ordered;
}

// By an agent that is there to do it: what waits for a node to come back is in nobody's way.
bool Checkpoints::IsBeingImaged(const JobRecord& job) const {
  if (!IsSavedRunning(job) || job.state == JobState::kSaving) return false;
  return cluster_.AreHeard(job);
}

std::optional<Checkpoints::Due> Checkpoints::IfDue(const JobRecord& job) {
  if (job.state != JobState::kRunning || !schedule_.HasOne(job)) return std::nullopt;
  const Time now = clock_.Now();
  Time& look_at = look_at_[job.id];
  if (now < look_at) return std::nullopt;
  const auto schedule = schedule_.Of(job);
  if (!schedule) {
    look_at = now + kAskAgain;
    return std::nullopt;
  }
  const Duration interval = schedule->every.interval;
  const Duration since = now - std::max(job.durable_at, job.state_since);
  if (since < interval) {
    look_at = now + std::min(kAskAgain, interval - since);
    return std::nullopt;
  }
  if (IsWantedSoon(job, *schedule)) return std::nullopt;
  return Due{since - interval, &job, *schedule};
}

bool Checkpoints::Order(const Due& due) {
  const JobRecord& job = *due.job;
  // All ranks wait for the last one.
  if (!cluster_.AreHeard(job)) return false;
  JobMoved move;
  if (schedule_.ByImage(job)) {
    if (!HasRoomOnSchedule(job) || !quota_.HasRoomOnSchedule(job)) {
      look_at_[job.id] = clock_.Now() + kAskAgain;
      return false;
    }
    move = OrderImage(job, schedule_.TierOf(job));
    if (due.schedule.cost.longest > Duration(0)) move.predicted = clock_.Now() + due.schedule.cost.longest;
  } else {
    move.event = JobEvent::kOrderSave;
    move.predicted = clock_.Now() + job.spec.app->grace;
    move.keep_running = true;
  }
  move.reason = EveryText(due.schedule.every, move.tier);
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
  // Copied: recording takes them off the list.
  const std::vector<CheckpointId> all = job.checkpoints;
  for (size_t i = 0; i + keep < all.size(); ++i) {
    const CheckpointId& oldest = all[i];
    if (!over && OutlivesNodes(state_, job, state_.checkpoints.at(oldest))) continue;
    const char* why = !over                            ? "newer ones are kept"
                      : job.state == JobState::kFailed ? "its job has failed, and that long ago"
                                                       : "its job has ended";
    recorder_.Record(job.id, CheckpointChanged{oldest, CheckpointState::kDeleted, why});
  }
}

bool Checkpoints::HasRoomOnSchedule(const JobRecord& job) {
  const std::string why = tiers_.WhyNone(job, schedule_.TierOf(job));
  if (why.empty()) {
    without_room_.erase(job.id);
  } else if (without_room_.insert(job.id).second) {  // once: it is asked again at every tick
    recorder_.Record(job.id, Noted{absl::StrCat("is not checkpointed on schedule: ", why)});
  }
  return why.empty();
}

Bytes Checkpoints::SharedBytesOfNext(const JobRecord& job) const {
  const bool ordered = IsSavedRunning(job);
  const Tier tier = ordered ? job.current.tier : schedule_.TierOf(job);
  return tier == Tier::kShared ? schedule_.BytesOfNext(job, tier) : Bytes{0};
}

// One that leaves by a checkpoint is saved then. One that is only ended is saved as long as there is time for
// it.
bool Checkpoints::IsWantedSoon(const JobRecord& job, const CheckpointSchedule::Schedule& schedule) const {
  const std::optional<Leaving> leaving = LeavesNext(job);
  if (!leaving) return false;
  const Duration saving = 2 * schedule.cost.longest;
  const bool is_known = saving > Duration(0);
  const Duration within =
      leaving->is_only_ended && is_known ? saving : std::max(saving, schedule.every.interval);
  return leaving->at < clock_.Now() + within;
}

bool Checkpoints::LeavesWithin(const JobRecord& job, Duration time) const {
  const std::optional<Leaving> leaving = LeavesNext(job);
  return leaving && leaving->at < clock_.Now() + time;
}

std::optional<Checkpoints::Leaving> Checkpoints::LeavesNext(const JobRecord& job) const {
  std::optional<Leaving> next;
  for (const auto& [id, request] : state_.index.requests()) {
    if (!WaitsForItsNodes(*request)) continue;
    const Plan& plan = request->plans.back();
    for (const PlanStep& step : plan.steps) {
      if (step.job != job.id || step.early || step.begin == Time{} || (next && next->at <= step.begin))
        continue;
      if (job.last_preempted && *job.last_preempted >= step.begin) continue;  // it did, and has come back
      const bool is_only_ended = step.method == Method::kKill && OwnershipOf(job.spec).siding_ends &&
                                 EarlyStepOf(plan, job.id) == nullptr;
      next = Leaving{step.begin, is_only_ended};
    }
  }
  return next;
}

}  // namespace siding
