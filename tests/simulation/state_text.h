// The durable part of the controller's state, written out: two states are the same if their texts are.
#pragma once

#include <string>

#include "controller/engine/state.h"

namespace siding::simulation {

std::string StateText(const ClusterState& state);

}  // namespace siding::simulation
