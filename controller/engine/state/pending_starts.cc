#include "controller/engine/state/pending_starts.h"

#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"

namespace siding {

void PendingStarts::NoteStartsOf(const JobRecord& job) {
  if (!OwnershipOf(job.spec).siding_starts || !IsBeginning(job.state)) return;
  for (int rank : cluster_.LiveRanks(job)) {
    const TaskSeen seen = cluster_.Seen(job, rank);
    if (seen.connected && !seen.known) starts_[job.nodes[rank]].insert(ClusterView::TaskOf(job, rank));
  }
}

void PendingStarts::Forget(const NodeId& node, const TaskId& task) {
  if (const auto starts = starts_.find(node); starts != starts_.end()) starts->second.erase(task);
}

void PendingStarts::TakeBack() {
  for (auto& [node, tasks] : starts_) {
    std::erase_if(tasks, [&](const TaskId& id) {
      const auto job = state_.jobs.find(id.job);
      return job == state_.jobs.end() || !IsTerminal(job->second.state);
    });
  }
}

const std::set<TaskId>& PendingStarts::On(const NodeId& node) const {
  static const std::set<TaskId> kNone;
  const auto starts = starts_.find(node);
  return starts == starts_.end() ? kNone : starts->second;
}

}  // namespace siding
