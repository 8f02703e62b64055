// Images that nodes are asked to read back, and who waits for the answer.
//
// Used under the engine's lock.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "controller/engine/act/orders.h"
#include "controller/engine/state/context.h"

namespace siding {

class Verifications {
 public:
  using Callback = std::function<void(std::map<int, v1::OpResult> by_rank)>;  // called once
  // Of a checkpoint's images; done when no node is left to answer.
  struct Verification {
    CheckpointId checkpoint;
    size_t outstanding = 0;
    std::map<int, v1::OpResult> results;  // by rank
    std::vector<Callback> waiting;
  };
  struct AskedToVerify {
    std::shared_ptr<Verification> verification;
    NodeId node;
    int rank = 0;
    Tier tier = Tier::kShared;
  };

  Verifications(const Context& c, Orders& orders) : state_(c.state), cluster_(c.cluster), orders_(orders) {}

  // Null: no verification has this number. Valid until it is answered.
  const AskedToVerify* AskedOf(int64_t op) const;
  // The order was not sent, so no answer will come.
  void Drop(int64_t op) { by_op_.erase(op); }

  // Callers that ask about images which are being read share the answer: nodes read each image once, however
  // often callers ask and give up.
  absl::Status Verify(const CheckpointId& id, Callback done);
  // An answer from the node that was asked.
  void OnVerified(const v1::OpResult& result);
  // Callers that wait for answers of the node are told that none come.
  void DropVerifications(const NodeId& node, const std::string& why);

 private:
  absl::StatusOr<std::map<int, NodeId>> WhoHas(const CheckpointRecord& checkpoint) const;
  absl::StatusOr<bool> WaitWithOthers(const CheckpointId& id, Callback& done);

  const ClusterState& state_;
  const ClusterView& cluster_;
  Orders& orders_;
  std::map<int64_t, AskedToVerify> by_op_;
};

}  // namespace siding
