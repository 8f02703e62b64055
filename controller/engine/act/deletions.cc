#include "controller/engine/act/deletions.h"

#include <algorithm>
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
  deleted_.clear();
}

const NodeId* Deletions::AskedOf(int64_t op) const {
  const auto asked = by_op_.find(op);
  return asked == by_op_.end() ? nullptr : &asked->second.node;
}

void Deletions::OrderDeletions() {
  // Copied: what is recorded changes these.
  std::set<CheckpointId> ids = state_.unwanted;
  ids.insert(state_.copied.begin(), state_.copied.end());
  for (const CheckpointId& id : ids) {
    const CheckpointRecord& checkpoint = state_.checkpoints.at(id);
    if (Finish(checkpoint)) continue;
    for (const Image& image : ToDelete(checkpoint)) Order(checkpoint, image);
  }
}

// And not kept for a look, nor asked for.
bool Deletions::IsAllUnwanted(const CheckpointRecord& checkpoint) const {
  const JobRecord& job = state_.jobs.at(checkpoint.job);
  // What nothing continues from is kept as long as a good one would be, so that the cause can be found.
  const bool of_interest =
      checkpoint.state == CheckpointState::kDamaged || checkpoint.state == CheckpointState::kRefused;
  // An agent that starts on a rebooted node asks the store how a task has ended.
  const bool is_asked_for = job.state == JobState::kKilling && job.incarnation == checkpoint.incarnation;
  return IsUnwanted(checkpoint.state) && !(of_interest && manager_.KeepsImages(job)) && !is_asked_for;
}

// All that is not wanted of it, wherever it is.
std::vector<Deletions::Image> Deletions::ToDelete(const CheckpointRecord& checkpoint) const {
  const bool all = IsAllUnwanted(checkpoint);
  const bool copies =
      checkpoint.copies == NodeCopies::kUnwanted || (all && checkpoint.copies != NodeCopies::kNone);
  std::vector<Image> images;
  // Ranks that have ended, too: one may have ended after its image had been put in its place.
  for (int rank = 0; rank < static_cast<int>(checkpoint.nodes.size()); ++rank) {
    if (all) images.push_back({checkpoint.id, rank, checkpoint.tier});
    if (copies) images.push_back({checkpoint.id, rank, Tier::kLocal});
    // Of a node that is no more, which may have copied it without that being known.
    if (all && checkpoint.tier == Tier::kLocal && state_.IsLost(checkpoint.nodes[rank]) && HasSharedTier())
      images.push_back({checkpoint.id, rank, Tier::kShared});
  }
  return images;
}

bool Deletions::HasSharedTier() const {
  return std::any_of(state_.observed_nodes.begin(), state_.observed_nodes.end(),
                     [&](const auto& node) { return cluster_.HasSharedTier(node.first); });
}

void Deletions::Order(const CheckpointRecord& checkpoint, const Image& image) {
  if (deleted_.contains(image)) return;  // others of it are not, as of a node that is lost
  const int rank = image.rank;
  const NodeId node = cluster_.NodeWithImage(checkpoint, rank, image.tier);
  const bool to_come = cluster_.IsBeingWritten(checkpoint, rank) && !state_.IsLost(checkpoint.nodes[rank]);
  if (!cluster_.IsConnected(node) || to_come) return;
  const Time now = clock_.Now();
  Deletion& deletion = open_[image];
  if (now < deletion.again_at) return;
  deletion.again_at = now + kDeleteAgain;
  if (deletion.op == 0) deletion.op = orders_.FreshOp();
  by_op_[deletion.op] = {image, node};
  v1::ToAgent command;
  command.set_op(deletion.op);
  command.mutable_delete_()->set_checkpoint(image.checkpoint.value());
  command.mutable_delete_()->set_tier(ToProto(image.tier));
  command.mutable_delete_()->set_rank(checkpoint.first_rank + rank);
  // It may have been copied without that being known.
  command.mutable_delete_()->set_copy_too(image.tier == Tier::kLocal && IsAllUnwanted(checkpoint));
  orders_.Command(node, std::move(command));
}

void Deletions::OnDeleted(const NodeId& node, const v1::OpResult& result) {
  const auto it = by_op_.find(result.op());
  const Image image = it->second.image;
  by_op_.erase(it);
  if (result.code() != 0) {
    spdlog::warn("checkpoint {} rank {} on {} could not be deleted: {}", image.checkpoint.value(), image.rank,
                 node.value(), Cut(result.message()));
    // What prevented it may pass soon.
    if (const auto deletion = open_.find(image); deletion != open_.end())
      deletion->second.again_at = clock_.Now() + PauseAfter(++deletion->second.failures);
    return;
  }
  // An answer may come twice, and after the job has been forgotten.
  const auto found = state_.checkpoints.find(image.checkpoint);
  if (found == state_.checkpoints.end() || found->second.state == CheckpointState::kGone) return;
  const CheckpointRecord& checkpoint = found->second;
  // Should the agent of a lost node come back after all, it may have put the image in its place meanwhile.
  if (cluster_.IsBeingWritten(checkpoint, image.rank)) return;
  deleted_.insert(image);
  Finish(checkpoint);
}

bool Deletions::Finish(const CheckpointRecord& checkpoint) {
  const std::vector<Image> images = ToDelete(checkpoint);
  const bool is_done =
      std::all_of(images.begin(), images.end(), [&](const Image& image) { return deleted_.contains(image); });
  if (images.empty() || !is_done) return false;
  const bool all = IsAllUnwanted(checkpoint);
  const auto is_its = [&](const Image& image) { return image.checkpoint == checkpoint.id; };
  std::erase_if(deleted_, is_its);
  std::erase_if(open_, [&](const auto& deletion) { return is_its(deletion.first); });
  if (all) {
    recorder_.Record(checkpoint.job,
                     CheckpointChanged{checkpoint.id, CheckpointState::kGone, checkpoint.note});
  } else {
    recorder_.Record(checkpoint.job, CopiesChanged{checkpoint.id, NodeCopies::kNone, {}});
  }
  return true;
}

}  // namespace siding
