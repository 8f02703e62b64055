#include "controller/engine/decide/ended_jobs.h"

#include <algorithm>
#include <utility>

#include "common/logging.h"
#include "controller/engine/state/predicates.h"
#include "controller/engine/state/trend_count.h"

namespace siding {
namespace {

constexpr size_t kPurgedAtOnce = 500;
// What is recorded then says what happened in each hour and day that is kept: up to a hundred kilobytes.
constexpr Duration kPurgeAgain = std::chrono::seconds(30);
// After an error, such as a full disk, it is not tried again at every tick.
constexpr Duration kCompactAgain = std::chrono::minutes(1);
constexpr Duration kLookForFailed = std::chrono::minutes(1);

void AddRequestsOf(const JobRecord& job, std::set<JobId>& needed) {
  needed.insert(job.displaced_by);
  needed.insert(job.current.request);
  if (job.plans.empty()) return;
  for (const PlanStep& step : job.plans.back().steps) needed.insert(step.job);
  for (const PlanKeep& keep : job.plans.back().kept) needed.insert(keep.job);
}

}  // namespace

void EndedJobs::ExpireFailed() {
  const Time now = clock_.Now();
  if (now < expire_failed_at_) return;
  expire_failed_at_ = now + kLookForFailed;
  for (const auto& [ended, id] : state_.ended) {
    if (now - ended < policy_.keep_failed_images) break;
    const JobRecord& job = state_.jobs.at(id);
    if (job.state == JobState::kFailed && !job.checkpoints.empty()) agenda_.jobs.insert(id);
  }
}

std::vector<JobId> EndedJobs::PurgeEnded() {
  const Time now = clock_.Now();
  if (now < purge_not_before_ || (!platform_.manager().empty() && !state_.queue.seen)) return {};
  std::vector<JobId> jobs = Purgeable();
  if (jobs.empty()) return {};
  if (jobs.size() < kPurgedAtOnce) purge_not_before_ = now + kPurgeAgain;
  JobsForgotten forgotten{jobs, state_.last_job, state_.forgotten, state_.forgotten_trends,
                          state_.forgotten_totals};
  for (const JobId& id : forgotten.jobs) {
    AddTo(forgotten.tally, state_.jobs.at(id));
    Add(forgotten.trends, state_.jobs.at(id).trends);
    Add(forgotten.totals, state_.jobs.at(id).totals);
  }
  Trim(forgotten.trends, now);
  recorder_.Record(JobId(), std::move(forgotten));
  return jobs;
}

void EndedJobs::CompactJournal() {
  const Time now = clock_.Now();
  if (now < compact_not_before_) return;
  const absl::StatusOr<bool> more = recorder_.Compact();
  if (more.ok()) return;
  compact_not_before_ = now + kCompactAgain;
  spdlog::warn("events of forgotten jobs stay in the journal for now: {}",
               std::string(more.status().message()));
}

// The oldest of those that have been kept long enough, or are too many.
std::vector<JobId> EndedJobs::Purgeable() {
  const Time now = clock_.Now();
  const auto most = static_cast<size_t>(retention_.keep_ended_jobs);
  size_t too_many = state_.ended.size() - std::min(state_.ended.size(), most);
  std::vector<JobId> found;
  std::optional<std::set<JobId>> needed;  // asked for when there is one that might go
  for (const auto& [ended, id] : state_.ended) {
    if (found.size() >= kPurgedAtOnce) break;
    if (too_many == 0 && now - ended < retention_.keep_ended) break;
    if (too_many > 0) --too_many;
    const JobRecord& job = state_.jobs.at(id);
    const bool counts = job.spec.kind == JobKind::kOnDemand && job.first_started;  // see NodeHoursOf()
    if (counts && now - ended < kQuotaWindow) continue;
    if (!needed) needed = ReferencedJobs();
    // A job that its cluster manager has put back into its queue continues from its images.
    if (!needed->contains(id) && HasNoImage(job) && ItsNodesAreThere(job)) found.push_back(id);
  }
  return found;
}

// Jobs that other records, reports or the cluster manager's queue still refer to.
std::set<JobId> EndedJobs::ReferencedJobs() const {
  std::set<JobId> needed;
  for (const auto& [id, job] : state_.unfinished) AddRequestsOf(*job, needed);
  for (const auto& [node, tasks] : state_.observed_tasks) {
    for (const auto& [id, task] : tasks) needed.insert(id.job);
  }
  for (const auto& [id, job] : state_.queue.jobs) needed.insert(id);
  return needed;
}

// Nothing of it is in the store. What is there is given up, and taken out by OrderDeletions.
bool EndedJobs::HasNoImage(const JobRecord& job) {
  bool none = true;
  for (const CheckpointId& id : job.ordered) {
    const auto found = state_.checkpoints.find(id);
    if (found == state_.checkpoints.end()) continue;
    const CheckpointRecord& checkpoint = found->second;
    if (checkpoint.state == CheckpointState::kGone || checkpoint.state == CheckpointState::kFailed) continue;
    none = false;
    if (checkpoint.state == CheckpointState::kGood && !manager_.KeepsImages(job))
      recorder_.Record(job.id, CheckpointChanged{id, CheckpointState::kDeleted, "its job ended long ago"});
    if (checkpoint.state == CheckpointState::kBeingMade)
      recorder_.Record(job.id, CheckpointChanged{id, CheckpointState::kDeleted, "it was never whole"});
  }
  return none;
}

// A node that is away may still have a task of it, which would then belong to no job.
bool EndedJobs::ItsNodesAreThere(const JobRecord& job) const {
  if (IsKnownFromQueueOnly(job)) return true;
  const bool given_up = std::any_of(state_.given_up.begin(), state_.given_up.end(),
                                    [&](const auto& node) { return node.second.contains(job.id); });
  return !given_up && std::all_of(job.last_nodes.begin(), job.last_nodes.end(),
                                  [&](const NodeId& node) { return cluster_.IsConnected(node); });
}

}  // namespace siding
