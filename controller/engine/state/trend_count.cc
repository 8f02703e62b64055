#include "controller/engine/state/trend_count.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "model/lifecycle.h"

namespace siding {
namespace {

// Nothing: it does not leave its nodes by this.
std::optional<LossBy> LeavesBy(const JobRecord& job, const JobMoved& e) {
  switch (e.event) {
    case JobEvent::kFrozen:
      return LossBy::kSuspend;
    case JobEvent::kCommit:
      return job.current.keep_running ? std::nullopt : std::optional(LossBy::kCheckpoint);
    case JobEvent::kReleased:
    case JobEvent::kRequeued:
    case JobEvent::kRestartNeeded:
    case JobEvent::kRestoreFailed:
      if (job.running_since == Time{}) return std::nullopt;  // it had left before
      return job.state == JobState::kCommitting ? LossBy::kCheckpoint
             : job.state == JobState::kSaving   ? LossBy::kApp
             : job.state == JobState::kKilling  ? LossBy::kKill
                                                : LossBy::kFailure;
    default:
      return std::nullopt;
  }
}

// The order under way has freed the nodes by this.
bool FreesNodes(const JobRecord& job, JobEvent event) {
  switch (job.state) {
    case JobState::kSuspending:
      return event == JobEvent::kFrozen;
    case JobState::kCommitting:
    case JobState::kSaving:
    case JobState::kKilling:
      // One that is frozen has given them up already.
      return (event == JobEvent::kReleased || event == JobEvent::kRequeued) && !job.current.keep_running &&
             !job.in_ram;
    default:
      return false;
  }
}

void AddDifference(Trend& trend, const Tally& before, const Tally& after, LossBy by) {
  trend.met += after.met - before.met;
  trend.missed += after.missed - before.missed;
  trend.refused += after.refused - before.refused;
  trend.preemptions += after.preemptions - before.preemptions;
  const int64_t lost_ms = std::llround(1000 * (after.lost_node_seconds - before.lost_node_seconds));
  if (lost_ms != 0) trend.lost_node_ms[by] += lost_ms;
}

// Thousandths. As by RatioStep(), what is shorter than a second counts as one.
int64_t Ratio(Duration observed, Duration predicted) {
  const auto seconds = [](Duration time) { return std::max(1.0, ToSeconds(time)); };
  return std::llround(1000 * seconds(observed) / seconds(predicted));
}

int64_t Millis(Duration time) { return time / std::chrono::milliseconds(1); }

void Observe(ImageTotals& images, Duration took, Bytes bytes) {
  Observe(images.ms, kImageMs, Millis(took));
  Observe(images.bytes, kImageBytes, bytes.value);
}

void AddPlan(Totals& totals, const Plan& plan) {
  if (!plan.feasible) return;
  ++(plan.exact ? totals.exact_plans : totals.other_plans);
  const auto leave = [](const PlanStep& step) { return !step.early; };
  Observe(totals.victims, kVictims, std::count_if(plan.steps.begin(), plan.steps.end(), leave));
}

const CheckpointRecord* Find(const DurableState& state, const CheckpointId& id) {
  const auto found = state.checkpoints.find(id);
  return found == state.checkpoints.end() ? nullptr : &found->second;
}

}  // namespace

void AddTo(Tally& tally, const JobRecord& job) {
  tally.preemptions += job.preemptions;
  tally.lost_node_seconds += job.lost_node_seconds;
  tally.damaged_checkpoints += job.damaged_checkpoints;
  tally.gpu_states_lost += job.gpu_states_lost;
  tally.restarts += job.restarts;
  if (job.spec.kind != JobKind::kOnDemand) return;
  if (job.first_started) {
    ++(*job.first_started <= job.spec.start_by ? tally.met : tally.missed);
  } else if (job.state == JobState::kFailed && !job.plans.empty() && !job.plans.back().feasible) {
    ++tally.refused;
  }
}

Trends TrendsOf(const DurableState& state, Time now) {
  Trends trends = state.forgotten_trends;
  for (const auto& [id, job] : state.jobs) Add(trends, job.trends);
  Trim(trends, now);
  return trends;
}

Totals TotalsOf(const DurableState& state) {
  Totals totals = state.forgotten_totals;
  for (const auto& [id, job] : state.jobs) Add(totals, job.totals);
  return totals;
}

TrendCount::TrendCount(const DurableState& before, const Event& event) : event_(event) {
  const auto job = before.jobs.find(event.job);
  if (job == before.jobs.end()) return;
  AddTo(tally_, job->second);
  had_started_ = job->second.first_started.has_value();
  const auto* const move = std::get_if<JobMoved>(&event.body);
  if (move == nullptr || !Next(job->second.state, move->event)) return;
  LookAt(job->second, *move);
  const CheckpointRecord* const image = Find(before, job->second.current.checkpoint);
  if (image != nullptr && image->state == CheckpointState::kBeingMade) being_made_ = image->id;
}

void TrendCount::LookAt(const JobRecord& job, const JobMoved& move) {
  left_by_ = LeavesBy(job, move);
  notice_ = job.current.notice;
  ended_ = EndOf(job, move);
  state_since_ = job.state_since;
  if (job.state == JobState::kRestoring) restored_from_ = job.current.checkpoint;
  if (FreesNodes(job, move.event) && job.current.predicted != Time{})
    released_ = Release{event_.at - job.ordered_at, job.current.predicted - job.ordered_at};
}

void TrendCount::Record(const DurableState& after, JobRecord& job) const {
  job.left_by = left_by_.value_or(job.left_by);
  Tally tally;
  AddTo(tally, job);
  Trend trend;
  AddDifference(trend, tally_, tally, job.left_by);
  if (released_) ++trend.releases[RatioStep(released_->observed, released_->predicted)];
  if (const CheckpointRecord* image = being_made_ ? Find(after, *being_made_) : nullptr;
      image != nullptr && image->state == CheckpointState::kGood && !image->SharesBytes()) {
    const Duration took = event_.at - image->created - notice_;
    Add(trend, {.writes = {{image->tier, {1, image->bytes, std::max(Duration(0), took)}}}});
  }
  AddTotals(after, trend, job);
  if (trend == Trend()) return;
  Add(job.trends, event_.at, trend);
  Trim(job.trends, event_.at);
}

void TrendCount::AddTotals(const DurableState& after, const Trend& trend, JobRecord& job) const {
  Totals& totals = job.totals;
  for (const auto& [by, node_ms] : trend.lost_node_ms) totals.lost_node_ms[by] += node_ms;
  if (released_) Observe(totals.release_ratios, kRatios, Ratio(released_->observed, released_->predicted));
  if (const auto* planned = std::get_if<RequestPlanned>(&event_.body)) AddPlan(totals, planned->plan);
  AddStart(job);
  if (const CheckpointRecord* image = being_made_ ? Find(after, *being_made_) : nullptr;
      image != nullptr && image->state == CheckpointState::kGood)
    Observe(totals.dumps[image->tier], image->took,
            image->new_bytes > Bytes{} ? image->new_bytes : image->bytes);
  if (!ended_) return;
  ActionCount& count = totals.actions[ended_->action];
  ++(ended_->done ? count.done : count.failed);
  if (!ended_->done) count.last_failed = event_.at;
  if (const CheckpointRecord* image = ended_->done ? Find(after, restored_from_) : nullptr; image != nullptr)
    Observe(totals.restores[image->tier], event_.at - state_since_, image->bytes);
}

void TrendCount::AddStart(JobRecord& job) const {
  if (had_started_ || !job.first_started || job.spec.kind != JobKind::kOnDemand) return;
  const Duration margin = job.spec.start_by - *job.first_started;
  Observe(job.totals.margins, kMarginMs, Millis(margin));
  job.totals.last_start = *job.first_started;
  job.totals.last_margin = margin;
  if (margin < Duration(0)) job.totals.last_missed = *job.first_started;
}

}  // namespace siding
