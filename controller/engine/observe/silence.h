// Silent nodes: their agents are connected and send no heartbeats, because the agent is stopped or hangs, or
// the machine swaps. The last report may be out of date, and orders may not be carried out, so nothing new is
// planned there. What runs there is left alone, and orders for it are sent: its tasks are no more lost than
// those of a node that is cut off.
//
// Used under the engine's lock.
#pragma once

#include "controller/engine/act/verifications.h"
#include "controller/engine/state/context.h"

namespace siding {

class Silence {
 public:
  Silence(const Context& c, Verifications& verifications)
      : observed_(c.observed),
        clock_(c.clock),
        accounts_(c.accounts),
        agenda_(c.agenda),
        verifications_(verifications) {}

  // Without a heartbeat for so long a node is silent; 0: never.
  void set_after(Duration after) { silent_after_ = after; }

  // Other messages do not count: only heartbeats say what the node is like.
  void OnHeartbeat(const NodeId& node, ObservedNode& observed);
  void DetectSilence(Time last_look);

 private:
  ObservedState& observed_;
  const Clock& clock_;
  NodeAccounts& accounts_;
  Agenda& agenda_;
  Verifications& verifications_;
  Duration silent_after_{0};
  Time awake_since_;  // since then the controller itself has checked every second or so
};

}  // namespace siding
