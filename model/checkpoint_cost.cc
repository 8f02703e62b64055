#include "model/checkpoint_cost.h"

#include <algorithm>

namespace siding {
namespace {

// One of them is a whole one: an agent begins anew with every ninth.
constexpr size_t kKept = 10;

// The lower of the two in the middle, if there are two.
Duration Median(std::vector<Duration> values) {
  const auto middle = values.begin() + (std::ssize(values) - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void Learn(std::vector<CheckpointCost>& costs, const CheckpointCost& cost) {
  const auto same = [&](const CheckpointCost& other) { return other.tier == cost.tier; };
  if (std::count_if(costs.begin(), costs.end(), same) >= std::ptrdiff_t{kKept})
    costs.erase(std::find_if(costs.begin(), costs.end(), same));
  costs.push_back(cost);
}

std::optional<ExpectedCost> Expected(const std::vector<CheckpointCost>& costs, Tier tier) {
  ExpectedCost expected;
  std::vector<Duration> times;
  for (const CheckpointCost& cost : costs) {
    if (cost.tier != tier) continue;
    times.push_back(cost.takes);
    expected.stop += cost.stop;
    expected.written += cost.written;
    expected.longest = std::max(expected.longest, cost.takes);
  }
  if (times.empty()) return std::nullopt;
  expected.stop /= std::ssize(times);
  expected.written.value /= std::ssize(times);
  expected.takes = Median(std::move(times));
  return expected;
}

}  // namespace siding
