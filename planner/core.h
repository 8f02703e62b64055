// Which nodes can be among those that a cheapest plan frees? Where jobs span nodes, all nodes of a cluster
// tend to be tied into one component, far too large for all its clearances to be looked at (component.h). But
// of most nodes it is plain that clearing them is too dear. Without them, what remains falls apart.
#pragma once

#include <optional>
#include <vector>

#include "planner/component.h"

namespace siding {

// By node: less than this it cannot cost to free it, if a job on several nodes costs each its part; infinity:
// it cannot be freed. So freeing several nodes costs at least the sum.
std::vector<double> ClearingPrices(const Problem& problem, const Component& component);

// By node: whether a plan that costs no more than `most` can free it and `nodes` in all; without `most`,
// whether it can be freed at all. Leaving out the others loses nothing.
std::vector<bool> CoreNodes(const std::vector<double>& prices, int nodes, std::optional<int64_t> most);

}  // namespace siding
