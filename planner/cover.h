// Multiple-choice covering: from each group take at most one choice, so that every row reaches its demand, at
// the least cost. A row is something that is wanted (nodes by a moment: amounts and demand are positive) or
// something that is short (bytes over a link by a moment: amounts are <= 0, and so is demand). Exact; see
// cover.cc for how.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace siding {

inline constexpr int kMostRows = 8;

using Amounts = std::array<int32_t, kMostRows>;  // by row; those beyond the problem's rows are 0

struct CoverChoice {
  Amounts amounts{};
  int64_t cost = 0;  // >= 0; in sum over all groups below 2^62
};
using CoverGroup = std::vector<CoverChoice>;

struct CoverAnswer {
  bool found = false;  // a selection that meets the demands
  // False: the search was cut short, as it may be with several rows of the short kind and hundreds of groups.
  // What was found may then be `gap` too dear, and where nothing was found there may be something.
  bool exact = true;
  int64_t cost = 0;
  std::vector<int> chosen;  // per group: index of its choice, or -1
  int64_t gap = 0;
};

// Equal costs: the same problem always has the same answer, and groups are looked at in their order.
CoverAnswer SolveCover(const std::vector<CoverGroup>& groups, const std::vector<int>& demand);

}  // namespace siding
