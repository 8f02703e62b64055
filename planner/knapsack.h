// Multiple-choice knapsack: from each group at most one choice, so that enough nodes are freed within a
// budget at the least cost. Exact, by dynamic programming over (groups x nodes still needed x budget steps);
// see Kellerer, Pferschy, Pisinger, "Knapsack Problems" (2004), chapter 11.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace siding {

struct KnapsackChoice {
  int nodes = 0;     // freed, > 0
  int steps = 0;     // of the budget
  int64_t cost = 0;  // >= 0, below 2^53 in sum
};
using KnapsackGroup = std::vector<KnapsackChoice>;  // at most 254 choices

struct KnapsackAnswer {
  int64_t cost = 0;
  std::vector<int> chosen;  // per group: index of its choice, or -1
};

// nullopt if `need` nodes cannot be freed within `steps`. Time: O(choices x need x steps); memory: one byte
// for each (group, node, step).
std::optional<KnapsackAnswer> SolveKnapsack(const std::vector<KnapsackGroup>& groups, int need, int steps);

}  // namespace siding
