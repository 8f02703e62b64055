// Multiple-choice covering: from each group take at most one choice, so that every row reaches its demand, at
// the least cost. A row is something that is wanted (nodes by a moment: amounts and demand are positive) or
// something that is short (bytes over a link by a moment: amounts are <= 0, and so is demand). Exact; see
// cover.cc for how.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
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
  int64_t cost = 0;
  std::vector<int> chosen;  // per group: index of its choice, or -1
  bool exact = true;        // false: the search was cut short, and at most `gap` could be saved
  int64_t gap = 0;
};

// nullopt if the demands cannot be met. With several rows of the short kind and hundreds of groups it may
// also be nullopt where a selection exists that is hard to find. Equal costs: the same problem always has the
// same answer, and groups are looked at in their order.
std::optional<CoverAnswer> SolveCover(const std::vector<CoverGroup>& groups, const std::vector<int>& demand);

}  // namespace siding
