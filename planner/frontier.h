// Which nodes can be freed by a moment, and by which jobs leaving.
//
// Jobs that share a node are not independent: the node is free only when enough of them have left. So jobs
// are put together that share nodes, directly or through others. Within such a component every combination of
// its jobs' options is looked at, and those are kept that no other beats in all of nodes freed, budget and
// cost. Where jobs have nodes to themselves, a component is one job and its choices are its options.
//
// A component with more than kCombinations combinations is thinned out first, to the cheapest option with and
// without use of shared storage per job, and after that to the nodes' cheapest clearances one after another.
// Only then may the answer be worse than the best.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "planner/options.h"

namespace siding {

inline constexpr int64_t kCombinations = 20000;

// What the budget of shared storage is counted in.
struct Budget {
  int steps = 0;
  double bytes_per_step = 0;
  // Rounded up: a plan is never found to fit that does not. Each victim so wastes less than one step.
  int StepsFor(Bytes bytes) const;
};

struct ChosenOption {
  int candidate = 0;  // index into the candidates
  int option = 0;
};

struct FrontierChoice {
  std::vector<int> nodes;  // freed beyond those that are free anyway; indices into the snapshot's nodes
  int steps = 0;
  int64_t loss_ms = 0;
  std::vector<ChosenOption> victims;
};

struct Frontier {
  std::vector<int> free_nodes;                      // free by then though nobody is asked to leave
  bool exact = true;                                // no component had to be thinned out
  std::vector<std::vector<FrontierChoice>> groups;  // per component, at most one choice may be taken
};

// What can be free `within` from now.
Frontier MakeFrontier(const Snapshot& snapshot, const Request& request,
                      const std::vector<Candidate>& candidates, Duration within, const Budget& budget);

// The node could serve the request if nothing ran there.
bool IsEligible(const NodeView& node, const Request& request);

}  // namespace siding
