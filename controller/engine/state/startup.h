// When this controller started, and until when it waits for what others know.
#pragma once

#include "common/units.h"

namespace siding {

// In which the agents of an earlier controller dial this one: twice as long as they wait at most.
inline constexpr Duration kAgentsDial = std::chrono::seconds(10);

// Used under the engine's lock.
struct StartUp {
  Time started;         // no agent has been heard before
  Time agents_back_at;  // the agents of the controller before this one have dialled by then
  Time caught_up_at;    // the journal is a copy, and agents have said by then what it does not know

  bool IsCatchingUp(Time now) const { return now < caught_up_at; }
};

}  // namespace siding
