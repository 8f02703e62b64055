#include "controller/engine/state/manager_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "controller/engine/state/predicates.h"

namespace siding {

bool ManagerView::IsHeard() const {
  return platform_.manager().empty() || (state_.queue.seen && state_.queue.answers);
}

const ManagedJob* ManagerView::QueuedAs(JobId id) const {
  const auto found = state_.queue.jobs.find(id);
  return found == state_.queue.jobs.end() ? nullptr : &found->second;
}

bool ManagerView::RunsInQueue(JobId id) const {
  const ManagedJob* queued = QueuedAs(id);
  return queued != nullptr && queued->phase == ManagedPhase::kRunning;
}

const ManagedJob* ManagerView::ComingBack(const JobRecord& job) const {
  if (!IsExternallyManaged(job) || HoldsNodes(job.state)) return nullptr;
  const ManagedJob* queued = QueuedAs(job.id);
  const bool started =
      queued != nullptr && queued->phase == ManagedPhase::kRunning && queued->starts > job.incarnation;
  return started ? queued : nullptr;
}

bool ManagerView::IsAboutToStart(const JobRecord& request) const {
  if (!IsKnownFromQueueOnly(request) || request.state != JobState::kPending) return false;
  const ManagedJob* queued = QueuedAs(request.id);
  return queued != nullptr && queued->phase == ManagedPhase::kRunning && !queued->nodes.empty();
}

bool ManagerView::MayRunOn(JobId id, const NodeId& node) const {
  const ManagedJob* queued = QueuedAs(id);
  return queued == nullptr || queued->phase != ManagedPhase::kRunning ||
         std::find(queued->nodes.begin(), queued->nodes.end(), node) != queued->nodes.end();
}

bool ManagerView::ContinuesInQueue(const JobRecord& job) const {
  if (!IsExternallyManaged(job) || job.first_rank == 0 || job.state != JobState::kRunning) return false;
  const ManagedJob* queued = QueuedAs(job.id);
  return queued != nullptr && queued->phase == ManagedPhase::kRunning && queued->starts <= job.incarnation;
}

bool ManagerView::IsStepOf(const JobRecord& job, const TaskId& task) const {
  if (!IsExternallyManaged(job) || job.state != JobState::kRunning || task.incarnation != job.incarnation ||
      task.rank < kRanksPerStep)
    return false;
  const std::vector<int> ranks = cluster_.LiveRanks(job);
  return job.first_rank == 0 || std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
           return task.rank != job.first_rank + rank && IsGone(cluster_.Seen(job, rank).phase());
         });
}

bool ManagerView::HasOtherSteps(const JobRecord& job) const {
  if (!IsExternallyManaged(job) || job.first_rank == 0) return false;
  for (const NodeId& node : job.nodes) {
    const auto tasks = state_.observed_tasks.find(node);
    if (tasks == state_.observed_tasks.end()) continue;
    for (auto task = tasks->second.lower_bound(TaskId{job.id, job.incarnation, kRanksPerStep});
         task != tasks->second.end() && task->first.job == job.id; ++task) {
      const bool own = task->first.rank / kRanksPerStep == job.first_rank / kRanksPerStep;
      if (!own && IsLive(task->second.report.phase())) return true;
    }
  }
  return false;
}

// An agent chooses from which image a task of a cluster manager continues. It sees its own disk and the
// shared tier: it cannot know whether images on the disks of other ranks' nodes are whole
// (agent/slurm/registration.h).
std::string ManagerView::WhyNotLocal(const JobRecord& job) const {
  if (!IsExternallyManaged(job)) return "";
  if (job.spec.nodes > 1) return "it has several tasks, and goes on from shared storage only";
  const ManagedJob* queued = QueuedAs(job.id);
  if (queued == nullptr || queued->can_be_pinned) return "";
  return absl::StrCat(job.spec.cluster_manager, " cannot be told to start it where its image would be");
}

// Its cluster manager still has it, or has not been polled yet: it may start the job again, which then
// continues from its images, however it ended.
bool ManagerView::MayComeBack(const JobRecord& job) const {
  if (!IsExternallyManaged(job) || platform_.manager().empty()) return false;
  const ManagedJob* queued = QueuedAs(job.id);
  return queued != nullptr ? queued->phase != ManagedPhase::kOver : !state_.queue.seen;
}

bool ManagerView::KeepsImages(const JobRecord& job) const {
  if (!job.ended || MayComeBack(job)) return true;
  return job.state == JobState::kFailed && clock_.Now() - *job.ended < policy_.keep_failed_images;
}

bool ManagerView::HasWhatOnlyEnds() const {
  return std::any_of(state_.queue.jobs.begin(), state_.queue.jobs.end(), [&](const auto& one) {
    const auto& [id, queued] = one;
    return queued.phase == ManagedPhase::kEnding && !queued.nodes.empty() && !state_.unfinished.contains(id);
  });
}

void ManagerView::TakeOthers(std::map<NodeId, Resources>& room) const {
  for (const auto& [id, queued] : state_.queue.jobs) {
    // What only ends has its nodes until it has.
    if (queued.phase != ManagedPhase::kRunning && queued.phase != ManagedPhase::kEnding) continue;
    const auto known = state_.unfinished.find(id);
    if (known != state_.unfinished.end() && ComingBack(*known->second) == nullptr) continue;
    for (const NodeId& node : queued.nodes) {
      if (auto it = room.find(node); it != room.end()) it->second -= queued.spec.per_node;
    }
  }
}

}  // namespace siding
