#include "controller/engine/act/copy_orders.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/engine/state/image_copies.h"
#include "controller/engine/state/predicates.h"

namespace siding {
namespace {

// An order may be lost. Of one that is under way nothing is new.
constexpr Duration kCopyAgain = std::chrono::minutes(1);
constexpr size_t kAtOnce = 16;
// So often asked for and not begun, it takes no turn from others.
constexpr int kUnheard = 3;

}  // namespace

void CopyOrders::OrderCopies(const std::vector<WantedCopy>& wanted, bool pause) {
  std::set<CheckpointId> names;
  for (const WantedCopy& copy : wanted) names.insert(copy.checkpoint);
  for (const auto& [image, since] : state_.missing_images) names.insert(image.first);
  std::erase_if(open_, [&](const auto& copy) { return !names.contains(copy.first.first); });
  std::erase_if(by_op_, [&](const auto& asked) { return !cluster_.IsConnected(asked.second.node); });
  // Nothing is written: what is not in its place can be there already only.
  for (const auto& [image, since] : state_.missing_images)
    OrderRank(state_.checkpoints.at(image.first), image.second, {});

  const size_t most = std::max(kAtOnce, state_.observed_nodes.size() / 4);
  size_t under_way = 0;
  for (const WantedCopy& copy : wanted) {
    const CheckpointRecord& checkpoint = state_.checkpoints.at(copy.checkpoint);
    const std::map<int, Bytes> begun = CopiesUnderWay(state_, checkpoint);
    for (int rank = 0; rank < static_cast<int>(checkpoint.nodes.size()); ++rank) {
      if (state_.missing_images.contains({copy.checkpoint, rank})) continue;  // as above
      const bool is_begun = begun.contains(rank);
      const bool may_begin = under_way < most && !pause;
      if (is_begun || may_begin || open_.contains({copy.checkpoint, rank}))
        OrderRank(checkpoint, rank, {copy.base, is_begun, pause});
    }
    under_way += IsUnderWay(copy.checkpoint);
  }
}

bool CopyOrders::IsUnderWay(const CheckpointId& checkpoint) const {
  const auto first = open_.lower_bound({checkpoint, 0});
  const auto end =
      std::find_if(first, open_.end(), [&](const auto& copy) { return copy.first.first != checkpoint; });
  return std::any_of(first, end, [&](const auto& copy) {
    return by_op_.contains(copy.second.op) && copy.second.unheard < kUnheard;
  });
}

void CopyOrders::OrderRank(const CheckpointRecord& checkpoint, int rank, const How& how) {
  const auto copied = state_.copied_ranks.find(checkpoint.id);
  const bool is_there = copied != state_.copied_ranks.end() && copied->second.contains(rank);
  const NodeId& node = checkpoint.nodes[rank];
  if (is_there || checkpoint.exited.contains(rank) || !cluster_.IsConnected(node)) return;
  const Time now = clock_.Now();
  Copy& copy = open_[{checkpoint.id, rank}];
  const bool is_news = how.pause != copy.pauses && by_op_.contains(copy.op);
  if (now < copy.again_at && !is_news) return;
  copy.again_at = now + kCopyAgain;
  copy.pauses = how.pause;
  // An agent of an earlier version does not answer.
  copy.unheard = how.is_begun ? 0 : copy.unheard + 1;
  if (copy.op == 0) {
    std::erase_if(by_op_, [&](const auto& asked) {
      return asked.second.checkpoint == checkpoint.id && asked.second.rank == rank;
    });
    copy.op = orders_.FreshOp();
  }
  by_op_[copy.op] = {checkpoint.id, rank, node};
  v1::ToAgent command;
  command.set_op(copy.op);
  command.mutable_copy()->set_checkpoint(checkpoint.id.value());
  command.mutable_copy()->set_rank(checkpoint.first_rank + rank);
  command.mutable_copy()->set_image_digest(checkpoint.DigestOf(rank));
  command.mutable_copy()->set_base(how.base.value());
  command.mutable_copy()->set_pause(how.pause);
  orders_.Command(node, std::move(command));
}

const CopyOrders::AskedToCopy* CopyOrders::AskedOf(int64_t op) const {
  const auto asked = by_op_.find(op);
  return asked == by_op_.end() ? nullptr : &asked->second;
}

void CopyOrders::OnCopied(const v1::OpResult& result) {
  const auto asked = by_op_.find(result.op());
  const auto [checkpoint, rank, node] = asked->second;
  by_op_.erase(asked);
  const auto copy = open_.find({checkpoint, rank});
  if (result.code() == 0 || result.code() == static_cast<int>(absl::StatusCode::kCancelled)) {
    if (copy != open_.end()) open_.erase(copy);
    return;
  }
  limited_log_.Warn(absl::StrCat("node ", node.value()),
                    absl::StrCat("checkpoint ", checkpoint.value(), " rank ", rank, " on ", node.value(),
                                 " could not be copied: ", Cut(result.message())));
  if (copy == open_.end()) return;
  copy->second.unheard = 0;
  copy->second.again_at = clock_.Now() + PauseAfter(++copy->second.failures);
}

void CopyOrders::AskAgain(const NodeId& node) {
  for (auto& [image, copy] : open_) {
    const auto checkpoint = state_.checkpoints.find(image.first);
    if (checkpoint != state_.checkpoints.end() && checkpoint->second.nodes[image.second] == node)
      copy.again_at = Time{};
  }
}

void CopyOrders::AskAgain() {
  for (auto& [image, copy] : open_) copy.again_at = Time{};
}

}  // namespace siding
