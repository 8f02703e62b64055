// Members become components: in an order, and with numbers for their nodes, that do not depend on how the
// snapshot is ordered.
#pragma once

#include <vector>

#include "planner/component.h"
#include "planner/nodes.h"

namespace siding {

// Nodes of the members are indices into the snapshot's; those of a component's members into its own.
std::vector<Component> Group(const Nodes& nodes, std::vector<Member> members);

// One of all members, whether they share nodes or not.
Component Whole(const Nodes& nodes, std::vector<Member> members);

}  // namespace siding
