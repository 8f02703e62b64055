#include "planner/knapsack.h"

#include <algorithm>
#include <limits>

namespace siding {
namespace {

// Costs are whole numbers in doubles: below 2^53 they are exact, and every x86-64 has vectors of them.
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr uint8_t kNone = 255;

// One row: wherever taking the choice is cheaper, take it and say so. The innermost loop of the planner.
__attribute__((target_clones("avx2", "default"), optimize("O3"))) void TakeWhereCheaper(
    const double* __restrict from, double cost, uint8_t index, int count, double* __restrict best,
    uint8_t* __restrict chosen) {
  for (int i = 0; i < count; ++i) {
    const double candidate = from[i] + cost;
    const bool cheaper = candidate < best[i];
    chosen[i] = cheaper ? index : chosen[i];
    best[i] = cheaper ? candidate : best[i];
  }
}

}  // namespace

std::optional<KnapsackAnswer> SolveKnapsack(const std::vector<KnapsackGroup>& groups, int need, int steps) {
  KnapsackAnswer answer;
  answer.chosen.assign(groups.size(), -1);
  if (need <= 0) return answer;
  const int width = steps + 1;
  const size_t plane = static_cast<size_t>(need + 1) * width;

  // best[n][b]: least cost to free at least n nodes with at most b steps, from the groups so far.
  std::vector<double> best(plane, kNever);
  std::fill_n(best.begin(), width, 0.0);
  std::vector<uint8_t> chosen(groups.size() * plane, kNone);
  int reach = 0;  // no more than so many nodes can be freed by the groups so far
  for (size_t g = 0; g < groups.size(); ++g) {
    int most = 0;
    for (const KnapsackChoice& choice : groups[g]) most = std::max(most, choice.nodes);
    reach = std::min(need, reach + most);
    // Downwards, so that the rows that are read have not seen this group yet: at most one choice of each.
    for (int n = reach; n > 0; --n) {
      double* row = &best[static_cast<size_t>(n) * width];
      uint8_t* marks = &chosen[g * plane + static_cast<size_t>(n) * width];
      for (size_t c = 0; c < groups[g].size(); ++c) {
        const KnapsackChoice& choice = groups[g][c];
        if (choice.steps > steps) continue;
        const double* from = &best[static_cast<size_t>(std::max(0, n - choice.nodes)) * width];
        TakeWhereCheaper(from, static_cast<double>(choice.cost), static_cast<uint8_t>(c),
                         width - choice.steps, row + choice.steps, marks + choice.steps);
      }
    }
  }

  int n = need, b = steps;
  if (best[static_cast<size_t>(n) * width + b] == kNever) return std::nullopt;
  answer.cost = static_cast<int64_t>(best[static_cast<size_t>(n) * width + b]);
  for (size_t g = groups.size(); g-- > 0 && n > 0;) {
    const uint8_t c = chosen[g * plane + static_cast<size_t>(n) * width + b];
    if (c == kNone) continue;
    answer.chosen[g] = c;
    b -= groups[g][c].steps;
    n = std::max(0, n - groups[g][c].nodes);
  }
  return answer;
}

}  // namespace siding
