#include "controller/engine/observe/silence.h"

#include <algorithm>

#include "common/logging.h"

namespace siding {
namespace {

// The check that is due every second was missing for this long: the controller itself was stopped, and
// messages that arrived meanwhile wait to be read.
constexpr Duration kStoodStill = std::chrono::seconds(3);

}  // namespace

void Silence::OnHeartbeat(const NodeId& node, ObservedNode& observed) {
  observed.last_beat = clock_.Now();
  if (!observed.silent) return;
  observed.silent = false;
  spdlog::info("node {} is heard again", node.value());
  accounts_.Touch(node);
  agenda_.schedule = true;
}

void Silence::DetectSilence(Time last_look) {
  const Time now = clock_.Now();
  if (now - last_look > kStoodStill) awake_since_ = now;
  if (silent_after_ == Duration(0)) return;
  for (auto& [node, observed] : observed_.observed_nodes) {
    if (!observed.connected || observed.silent) continue;
    if (now - std::max(observed.last_beat, awake_since_) < silent_after_) continue;
    observed.silent = true;
    observed.gone_since = now;
    spdlog::warn("node {} is silent: its agent is connected, and its last heartbeat came at {}", node.value(),
                 FormatTime(observed.last_beat));
    verifications_.DropVerifications(node, "is silent");
    accounts_.Touch(node);
    agenda_.schedule = true;
  }
}

}  // namespace siding
