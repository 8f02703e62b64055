// The durable part of the controller's state as text, for tests: two states are the same if their texts are.
#pragma once

#include <string>

#include "controller/engine/state/cluster_state.h"

namespace siding {

std::string StateText(const DurableState& state);

}  // namespace siding
