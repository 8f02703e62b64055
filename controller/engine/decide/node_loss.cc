#include "controller/engine/decide/node_loss.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace siding {

absl::Status NodeLoss::Lose(const NodeId& node, const std::string& by) {
  if (!cluster_.IsKnown(node)) return absl::NotFoundError(absl::StrCat("there is no node ", node.value()));
  if (state_.IsLost(node)) return absl::OkStatus();
  if (absl::Status may = MayBeLost(node); !may.ok()) return may;
  recorder_.Record(JobId(), NodeLost{node, true, by});
  agenda_.AddAll(state_);
  return absl::OkStatus();
}

absl::Status NodeLoss::MayBeLost(const NodeId& node) const {
  const auto refused = [&](const auto&... why) {
    return absl::FailedPreconditionError(absl::StrCat("node ", node.value(), why...));
  };
  if (cluster_.IsConnected(node) && !cluster_.IsHeard(node))
    return refused(
        " is silent, but its agent is still connected: end the agent, or switch the node off, first");
  if (cluster_.IsConnected(node))
    return refused(" is there, its agent is connected: cordon it, and move its jobs with migrate or vacate");
  const Time all_are_back = std::max(startup_.agents_back_at, startup_.caught_up_at);
  if (clock_.Now() < all_are_back) {
    return refused(" may still dial, the controller has only just started; say it again in ",
                   FormatDuration(all_are_back - clock_.Now()));
  }
  const auto managed = state_.queue.nodes.find(node);
  if (managed != state_.queue.nodes.end() && managed->second.usable)
    return refused(" is in use by ", platform_.manager(), ", which has to be told first that it is down");
  return absl::OkStatus();
}

}  // namespace siding
