#include "controller/engine/act/verifications.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/engine/state/predicates.h"
#include "controller/wire/wire.h"

namespace siding {
namespace {

// For one verification.
constexpr size_t kMostWaiting = 100;

}  // namespace

const Verifications::AskedToVerify* Verifications::AskedOf(int64_t op) const {
  const auto asked = by_op_.find(op);
  return asked == by_op_.end() ? nullptr : &asked->second;
}

absl::Status Verifications::Verify(const CheckpointId& id, Callback done) {
  const CheckpointRecord& checkpoint = state_.checkpoints.at(id);
  if (!IsWhole(checkpoint.state)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "checkpoint ", id.value(), " is ",
        checkpoint.state == CheckpointState::kBeingMade ? "still being made" : ToString(checkpoint.state)));
  }
  SIDING_ASSIGN_OR_RETURN(const bool waits, WaitWithOthers(id, done));
  if (waits) return absl::OkStatus();
  SIDING_ASSIGN_OR_RETURN(const auto nodes, WhoHas(checkpoint));
  auto verification = std::make_shared<Verification>();
  verification->checkpoint = id;
  verification->outstanding = nodes.size();
  verification->waiting.push_back(std::move(done));
  for (const auto& [rank, node] : nodes) {
    v1::ToAgent command;
    command.set_op(orders_.FreshOp());
    command.mutable_verify()->set_checkpoint(id.value());
    command.mutable_verify()->set_tier(ToProto(checkpoint.tier));
    command.mutable_verify()->set_rank(checkpoint.first_rank + rank);
    command.mutable_verify()->set_image_digest(checkpoint.DigestOf(rank));
    by_op_[command.op()] = {verification, node, rank, checkpoint.tier};
    orders_.Command(node, std::move(command));
  }
  return absl::OkStatus();
}

void Verifications::OnVerified(const v1::OpResult& result) {
  const auto it = by_op_.find(result.op());
  const auto [verification, asked, rank, tier] = it->second;
  by_op_.erase(it);
  v1::OpResult& kept = verification->results[rank] = result;
  kept.set_message(Cut(result.message()));
  if (--verification->outstanding > 0) return;
  for (const Callback& done : verification->waiting) done(verification->results);
}

void Verifications::DropVerifications(const NodeId& node, const std::string& why) {
  std::vector<int64_t> lost;
  for (const auto& [op, asked] : by_op_) {
    if (asked.node == node) lost.push_back(op);
  }
  for (int64_t op : lost) {
    v1::OpResult result;
    result.set_op(op);
    result.set_code(static_cast<int>(absl::StatusCode::kUnavailable));
    result.set_message(absl::StrCat("node ", node.value(), " ", why, " and has not answered"));
    OnVerified(result);
  }
}

// The node to ask for each rank's image.
absl::StatusOr<std::map<int, NodeId>> Verifications::WhoHas(const CheckpointRecord& checkpoint) const {
  std::map<int, NodeId> nodes;
  for (int rank = 0; rank < static_cast<int>(checkpoint.nodes.size()); ++rank) {
    if (checkpoint.exited.contains(rank)) continue;
    const NodeId node = cluster_.NodeWithImage(checkpoint, rank, checkpoint.tier);
    if (!cluster_.IsHeard(node)) {
      return absl::UnavailableError(absl::StrCat("rank ", rank, " of checkpoint ", checkpoint.id.value(),
                                                 " lies on node ", node.value(), ", which is ",
                                                 cluster_.IsConnected(node) ? "silent" : "down"));
    }
    nodes[rank] = node;
  }
  if (nodes.empty())
    return absl::FailedPreconditionError(absl::StrCat("checkpoint ", checkpoint.id.value(), " has no image"));
  return nodes;
}

// Callers that ask about images which are being read share the answer: nodes read each image once, however
// often callers ask and give up.
absl::StatusOr<bool> Verifications::WaitWithOthers(const CheckpointId& id, Callback& done) {
  const auto running = std::find_if(by_op_.begin(), by_op_.end(), [&](const auto& asked) {
    return asked.second.verification->checkpoint == id;
  });
  if (running == by_op_.end()) return false;
  std::vector<Callback>& waiting = running->second.verification->waiting;
  if (waiting.size() >= kMostWaiting) {
    return absl::ResourceExhaustedError(absl::StrCat("checkpoint ", id.value(), " is being verified, and ",
                                                     kMostWaiting, " calls wait for that; ask again later"));
  }
  waiting.push_back(std::move(done));
  return true;
}

}  // namespace siding
