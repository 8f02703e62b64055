// Nodes that are gone for good. Nobody but an operator can know that: to the controller such a node looks
// like one that is only cut off, whose tasks run on. From then on its tasks count as gone (Seen), their jobs
// go on elsewhere, and images that lie on its disk only are none any more.
//
// If the operator was wrong, and the node comes back, its agent reports what it still has. These tasks are of
// an incarnation or a placement of before, so they move no job, hold what they use (HeldByStrays) and are
// ended (ActOnStrays). A job that is to be started then waits for that, as for any node of `left_on`; if it
// has been started again in between, `given_up` remembers where.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "controller/engine/impl.h"

namespace siding {

// Somebody has heard of it, in this life of the controller or an earlier one.
bool Engine::Impl::IsKnown(const NodeId& node) const {
  const auto among = [&](const std::vector<NodeId>& nodes) {
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  };
  return state_.observed_nodes.contains(node) || state_.nodes.contains(node) ||
         state_.queue.nodes.contains(node) || state_.given_up.contains(node) ||
         !state_.index.On(node).empty() ||
         std::any_of(state_.index.waiting().begin(), state_.index.waiting().end(),
                     [&](const auto& job) { return among(job.second->left_on); }) ||
         std::any_of(state_.checkpoints.begin(), state_.checkpoints.end(),
                     [&](const auto& checkpoint) { return among(checkpoint.second.nodes); });
}

absl::Status Engine::Impl::MayBeLost(const NodeId& node) const {
  const auto refused = [&](const auto&... why) {
    return absl::FailedPreconditionError(absl::StrCat("node ", node.value(), why...));
  };
  if (IsConnected(node) && !IsHeard(node))
    return refused(
        " is silent, but its agent is still connected: end the agent, or switch the node off, first");
  if (IsConnected(node))
    return refused(" is there, its agent is connected: cordon it, and move its jobs with migrate or vacate");
  const Time all_are_back = std::max(agents_back_at_, caught_up_at_);
  if (clock_.Now() < all_are_back) {
    return refused(" may still dial, the controller has only just started; say it again in ",
                   FormatDuration(all_are_back - clock_.Now()));
  }
  const auto managed = state_.queue.nodes.find(node);
  if (managed != state_.queue.nodes.end() && managed->second.usable)
    return refused(" is in use by ", platform_.manager(), ", which has to be told first that it is down");
  return absl::OkStatus();
}

absl::Status Engine::Impl::Lose(const NodeId& node, const std::string& by) {
  if (!IsKnown(node)) return absl::NotFoundError(absl::StrCat("there is no node ", node.value()));
  if (IsLost(node)) return absl::OkStatus();
  if (absl::Status may = MayBeLost(node); !may.ok()) return may;
  Record(JobId(), NodeLost{node, true, by});
  JudgeAll();
  return absl::OkStatus();
}

// Of images that lie on the disks of their nodes, one that is lost makes all of its checkpoint useless.
bool Engine::Impl::JudgeImages(JobRecord& job) {
  for (const CheckpointId& id : job.checkpoints) {
    const CheckpointRecord& checkpoint = state_.checkpoints.at(id);
    if (checkpoint.tier != Tier::kLocal) continue;
    for (int rank = 0; rank < static_cast<int>(checkpoint.nodes.size()); ++rank) {
      const NodeId& node = checkpoint.nodes[rank];
      if (checkpoint.exited.contains(rank) || !IsLost(node)) continue;
      const std::string why = absl::StrCat("rank ", rank, " lies on node ", node.value(), ", which is lost");
      // Should the node come back, its image is deleted.
      Record(job.id, CheckpointChanged{id, "deleted", why});
      if (job.state == JobState::kParked && ResumptionOf(state_, job) == Resumption::kBeginning)
        FallBack(job, why);
      return true;
    }
  }
  return false;
}

// Its list of tasks is whole, and newer than any order of before it was lost.
bool Engine::Impl::JudgeGivenUp(JobRecord& job) {
  for (const auto& [node, jobs] : state_.given_up) {
    if (!jobs.contains(job.id) || IsLost(node) || !IsConnected(node)) continue;
    const auto& tasks = state_.observed_tasks[node];
    const bool left = std::any_of(tasks.lower_bound(TaskId{job.id, 0, 0}),
                                  tasks.lower_bound(TaskId{job.id, job.incarnation, 0}),
                                  [](const auto& task) { return IsLive(task.second.report.phase()); });
    if (left) continue;
    Record(job.id, TasksGone{node});
    return true;
  }
  return false;
}

// Where it was to be moved to; empty: anywhere.
std::vector<NodeId> Engine::Impl::TargetOf(const JobRecord& job) const {
  const bool lost =
      std::any_of(job.target.begin(), job.target.end(), [&](const NodeId& node) { return IsLost(node); });
  return lost ? std::vector<NodeId>() : job.target;
}

}  // namespace siding
