#include "controller/engine/observe/missing_images.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "controller/engine/state/predicates.h"

namespace siding {
namespace {

// With images in the local tiers of its nodes, alone or beside those in shared storage.
bool CountsOnNodes(const CheckpointRecord& checkpoint) {
  return checkpoint.state == CheckpointState::kGood &&
         (checkpoint.tier == Tier::kLocal || checkpoint.copies == NodeCopies::kUsed);
}

}  // namespace

void MissingImages::OnHello(const NodeId& node, const v1::KeptImages& kept) {
  const std::vector<Image> images = ImagesOn(node);
  Judge(node, kept, images);
  observed_.observed_nodes[node].images_then = images;
}

void MissingImages::OnKept(const NodeId& node, const v1::KeptImages& kept) {
  Judge(node, kept, observed_.observed_nodes[node].images_then);
  observed_.observed_nodes[node].images_then = ImagesOn(node);
}

std::vector<MissingImages::Image> MissingImages::ImagesOn(const NodeId& node) const {
  std::vector<Image> images;
  for (const auto& [id, checkpoint] : state_.checkpoints) {
    if (!CountsOnNodes(checkpoint)) continue;
    for (int rank = 0; rank < static_cast<int>(checkpoint.nodes.size()); ++rank) {
      if (checkpoint.nodes[rank] == node && !checkpoint.exited.contains(rank)) images.emplace_back(id, rank);
    }
  }
  return images;
}

void MissingImages::Judge(const NodeId& node, const v1::KeptImages& kept, const std::vector<Image>& images) {
  std::set<std::pair<std::string, int>> there;
  for (const v1::KeptImage& image : kept.images()) there.emplace(image.checkpoint(), image.rank());
  for (const auto& [id, rank] : images) {
    const auto found = state_.checkpoints.find(id);
    if (found == state_.checkpoints.end() || !CountsOnNodes(found->second)) continue;
    const CheckpointRecord& checkpoint = found->second;
    const JobRecord& job = state_.jobs.at(checkpoint.job);
    if (there.contains({id.value(), checkpoint.first_rank + rank})) {
      observed_.missing_images.erase({id, rank});
    } else if (checkpoint.tier == Tier::kLocal) {
      // Of one that is known to be in shared storage nothing is lost.
      const auto copied = state_.copied_ranks.find(id);
      if (copied == state_.copied_ranks.end() || !copied->second.contains(rank))
        observed_.missing_images.try_emplace({id, rank}, clock_.Now());
    } else if (!IsRestoringFrom(job, id)) {
      // Else other ranks may be reading theirs: the next list will do.
      const std::string why =
          absl::StrCat("rank ", rank, " is not in the memory of node ", node.value(), " any more");
      recorder_.Record(checkpoint.job, CopiesChanged{id, NodeCopies::kUnwanted, why});
    }
  }
}

void MissingImages::Settle() {
  for (const auto& [image, since] : std::map<Image, Time>(observed_.missing_images)) {
    const auto found = state_.checkpoints.find(image.first);
    if (found == state_.checkpoints.end() || found->second.state != CheckpointState::kGood ||
        found->second.tier != Tier::kLocal) {
      observed_.missing_images.erase(image);
      continue;
    }
    const auto node = state_.observed_nodes.find(found->second.nodes[image.second]);
    const bool is_there = node != state_.observed_nodes.end() && node->second.connected;
    if (is_there && !node->second.hello.has_shared()) Lose(image);
  }
}

void MissingImages::OnCopied(const CheckpointId& id, int rank) {
  if (observed_.missing_images.erase({id, rank}) > 0)
    recovery_.ForgetRetries(state_.checkpoints.at(id).job);  // it is where all nodes find it, or soon is
}

void MissingImages::OnNotFound(const CheckpointId& id, int rank) {
  const auto found = state_.checkpoints.find(id);
  const bool counts = found != state_.checkpoints.end() && found->second.state == CheckpointState::kGood &&
                      found->second.tier == Tier::kLocal;
  if (counts && observed_.missing_images.contains({id, rank})) Lose({id, rank});
}

// Nothing continues from that checkpoint any more.
void MissingImages::Lose(const Image& image) {
  const auto [id, rank] = image;
  const CheckpointRecord& checkpoint = state_.checkpoints.at(id);
  const JobRecord& job = state_.jobs.at(checkpoint.job);
  // Other ranks may be reading theirs. That restore fails, and it is asked for again.
  if (IsRestoringFrom(job, id)) return;
  observed_.missing_images.erase(image);
  const std::string why = absl::StrCat("rank ", rank, " is not in the memory of node ",
                                       checkpoint.nodes[rank].value(), " any more");
  recorder_.Record(job.id, CheckpointChanged{id, CheckpointState::kDeleted, why});
  recovery_.ForgetRetries(job.id);  // it may continue from the one before
  if (job.state == JobState::kParked && ResumptionOf(state_, job) == Resumption::kBeginning)
    recovery_.FallBack(job, why);
  agenda_.jobs.insert(job.id);
}

}  // namespace siding
