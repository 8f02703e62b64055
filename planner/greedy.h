// Clearances found by clearing one node after another, the cheapest first. Quick, whatever the size of the
// cluster; a bound for the search that finds the best (core.h), and what is looked at where that has to be
// narrowed (component.h).
#pragma once

#include <optional>
#include <vector>

#include "planner/component.h"

namespace siding {

// Several times, each with other ways of leaving preferred: what has been cleared after each of the first
// `most` nodes; and in the end, which is when nothing more can be cleared, or all that is wanted has been.
// A job that leaves without a node becoming free by it is put back. `demand`: see Frontier.
std::vector<FrontierChoice> ClearInTurn(const Problem& problem, const Component& component,
                                        const std::vector<int>& demand, size_t most, Effort& effort);

// The cheapest of what is found so that meets the demand (`any`: the first), without victims that it can do
// without; nullopt says nothing about whether there is any. `prices`: core.h.
std::optional<FrontierChoice> ClearEnough(const Problem& problem, const Component& component,
                                          const std::vector<int>& demand, const std::vector<double>& prices,
                                          bool any, Effort& effort);

}  // namespace siding
