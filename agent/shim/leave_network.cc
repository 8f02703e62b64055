#include "agent/shim/leave_network.h"

#include <chrono>

#include "agent/network/gang_network.h"

namespace siding {
namespace {

// That a connection has been closed arrives at once, if there is anybody.
constexpr Duration kEndArrives = std::chrono::milliseconds(500);
// A kernel answers each probe, also for a process that does not read. They come every five seconds.
constexpr Duration kMostSilence = std::chrono::minutes(1);
constexpr Duration kAtATime = std::chrono::hours(1);

}  // namespace

void LeaveNetwork(int network, const agent::ShimExit& exit, const std::function<bool()>& stopped) {
  const auto arrives = [&](Drained enough, Duration patience) {
    return AwaitConnections(network, enough, patience, {.most_silence = kMostSilence}, stopped)
        .value_or(true);
  };
  const bool was_ended = exit.signal() != 0 || exit.code() != 0;
  if (!was_ended && !arrives(Drained::kNotYet, kEndArrives)) {
    while (!stopped() && !arrives(Drained::kEnds, kAtATime)) {
    }
  }
  if (was_ended || stopped()) CutNetworkOff(network).IgnoreError();
}

}  // namespace siding
