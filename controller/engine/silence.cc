// Nodes whose agents hold their connections and say nothing: an agent that is stopped or hangs, a machine
// that swaps. What was heard last may not be so any more, and orders may not be carried out, so nothing new
// is planned there. What runs there is left alone, and orders for it are sent: it is as far from being lost
// as on a node that is cut off (lost.cc).
#include "absl/strings/str_cat.h"
#include "controller/engine/impl.h"

namespace siding {
namespace {

// The look that is due every second was not had for so long: the controller itself stood still, and what has
// come meanwhile waits to be read.
constexpr Duration kStoodStill = std::chrono::seconds(3);

}  // namespace

bool Engine::Impl::IsHeard(const NodeId& node) const {
  const auto observed = state_.observed_nodes.find(node);
  return observed != state_.observed_nodes.end() && observed->second.connected && !observed->second.silent;
}

// Other messages do not count: only heartbeats say what the node is like.
void Engine::Impl::NoteBeat(const NodeId& node, ObservedNode& observed) {
  observed.last_beat = clock_.Now();
  if (!observed.silent) return;
  observed.silent = false;
  spdlog::info("node {} is heard again", node.value());
  Touch(node);
  schedule_ = true;
}

void Engine::Impl::LookForSilence(Time last_look) {
  const Time now = clock_.Now();
  if (now - last_look > kStoodStill) awake_since_ = now;
  if (silent_after_ == Duration(0)) return;
  for (auto& [node, observed] : state_.observed_nodes) {
    if (!observed.connected || observed.silent) continue;
    if (now - std::max(observed.last_beat, awake_since_) < silent_after_) continue;
    observed.silent = true;
    observed.gone_since = now;
    spdlog::warn("node {} is silent: its agent is connected, and its last heartbeat came at {}", node.value(),
                 FormatTime(observed.last_beat));
    DropVerifications(node, "is silent");
    Touch(node);
    schedule_ = true;
  }
}

}  // namespace siding
