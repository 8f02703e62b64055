// The Lagrangian dual of the covering problem in cover.h: a price for each row, such that a choice is worth
// taking if it costs less than what it delivers at these prices. For any prices the priced optimum is a lower
// bound of the cost; the best prices make it tight up to about one choice's cost per row.
#pragma once

#include <vector>

#include "planner/cover.h"

namespace siding {

// The choices of all groups in one line, "none" included as the first of each group.
struct CoverTable {
  explicit CoverTable(const std::vector<CoverGroup>& groups, const std::vector<int>& demand);

  int rows = 0;
  std::vector<double> demand;
  std::vector<int> begin;  // per group its first choice, and one more
  std::vector<CoverChoice> choices;
  std::vector<double> cost;  // the same figures again, by column: what the inner loop reads
  std::vector<double> amount[kMostRows];

  int groups() const { return static_cast<int>(begin.size()) - 1; }
};

struct Priced {
  std::vector<double> prices;  // per row, >= 0
  double bound = 0;            // no selection that meets the demands costs less
  std::vector<int> best;       // per group: the choice (index into the table) that is best at these prices
};

// Prices that are the best up to a part in ten million, unless the problem is infeasible.
Priced MaximizeDual(const CoverTable& table);

}  // namespace siding
