#include "controller/engine/act/deletions.h"

#include <utility>

#include "common/logging.h"
#include "controller/engine/state/predicates.h"
#include "controller/wire/wire.h"

namespace siding {
namespace {

// Deleting a large image takes a while.
constexpr Duration kDeleteAgain = std::chrono::minutes(1);

}  // namespace

void Deletions::AskAgain() {
  for (auto& [image, deletion] : open_) deletion.again_at = Time{};
}

void Deletions::TakeBack() {
  AskAgain();
  deleted_ranks_.clear();
}

const NodeId* Deletions::AskedOf(int64_t op) const {
  const auto asked = by_op_.find(op);
  return asked == by_op_.end() ? nullptr : &asked->second.node;
}

void Deletions::OrderDeletions() {
  const Time now = clock_.Now();
  for (const CheckpointId& id : state_.unwanted) {
    const CheckpointRecord& checkpoint = state_.checkpoints.at(id);
    const JobRecord& job = state_.jobs.at(checkpoint.job);
    // What nothing continues from is kept as long as a good one would be, so that the cause can be found.
    const bool of_interest =
        checkpoint.state == CheckpointState::kDamaged || checkpoint.state == CheckpointState::kRefused;
    if (of_interest && manager_.KeepsImages(job)) continue;
    // An agent that starts on a rebooted node asks the store how a task has ended.
    if (job.state == JobState::kKilling && job.incarnation == checkpoint.incarnation) continue;
    // Ranks that have ended, too: one may have ended after its image had been put in its place.
    for (int rank = 0; rank < static_cast<int>(checkpoint.nodes.size()); ++rank) {
      const NodeId node = cluster_.NodeWithImage(checkpoint, rank);
      const bool to_come =
          cluster_.IsBeingWritten(checkpoint, rank) && !state_.IsLost(checkpoint.nodes[rank]);
      if (!cluster_.IsConnected(node) || to_come) continue;
      Deletion& deletion = open_[{id, rank}];
      if (now < deletion.again_at) continue;
      deletion.again_at = now + kDeleteAgain;
      if (deletion.op == 0) deletion.op = orders_.FreshOp();
      by_op_[deletion.op] = {{id, rank}, node};
      v1::ToAgent command;
      command.set_op(deletion.op);
      command.mutable_delete_()->set_checkpoint(id.value());
      command.mutable_delete_()->set_tier(ToProto(checkpoint.tier));
      command.mutable_delete_()->set_rank(checkpoint.first_rank + rank);
      orders_.Command(node, std::move(command));
    }
  }
}

void Deletions::OnDeleted(const NodeId& node, const v1::OpResult& result) {
  const auto it = by_op_.find(result.op());
  const auto [id, rank] = it->second.image;
  by_op_.erase(it);
  if (result.code() != 0) {
    spdlog::warn("checkpoint {} rank {} on {} could not be deleted: {}", id.value(), rank, node.value(),
                 Cut(result.message()));
    // What prevented it may pass soon.
    if (const auto deletion = open_.find({id, rank}); deletion != open_.end())
      deletion->second.again_at = clock_.Now() + PauseAfter(++deletion->second.failures);
    return;
  }
  // An answer may come twice, and after the job has been forgotten.
  const auto found = state_.checkpoints.find(id);
  if (found == state_.checkpoints.end() || found->second.state == CheckpointState::kGone) return;
  const CheckpointRecord& checkpoint = found->second;
  // Should the agent of a lost node come back after all, it may have put the image in its place meanwhile.
  if (cluster_.IsBeingWritten(checkpoint, rank)) return;
  std::set<int>& ranks = deleted_ranks_[id];
  ranks.insert(rank);
  if (ranks.size() < checkpoint.nodes.size()) return;
  recorder_.Record(checkpoint.job, CheckpointChanged{id, CheckpointState::kGone, checkpoint.note});
  deleted_ranks_.erase(id);
  for (int r = 0; r < static_cast<int>(checkpoint.nodes.size()); ++r) open_.erase({id, r});
}

}  // namespace siding
