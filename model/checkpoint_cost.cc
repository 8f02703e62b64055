#include "model/checkpoint_cost.h"

#include <algorithm>

namespace siding {
namespace {

constexpr size_t kKept = 10;
constexpr int kLongestFor = 100;

// The lower of the two in the middle, if there are two.
Duration Median(std::vector<Duration> values) {
  const auto middle = values.begin() + (std::ssize(values) - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void Learn(std::vector<CheckpointCost>& costs, const CheckpointCost& cost) {
  std::vector<size_t> same;
  for (size_t i = 0; i < costs.size(); ++i)
    if (costs[i].tier == cost.tier) same.push_back(i);
  if (same.size() > kKept) {
    CheckpointCost& longest = costs[same[0]];
    const CheckpointCost& oldest = costs[same[1]];
    const bool stays = longest.takes > oldest.takes && ++longest.learned_since < kLongestFor;
    costs.erase(costs.begin() + static_cast<std::ptrdiff_t>(same[stays ? 1 : 0]));
  }
  costs.push_back(cost);
}

std::optional<ExpectedCost> Expected(const std::vector<CheckpointCost>& costs, Tier tier) {
  ExpectedCost expected;
  std::vector<Duration> times;
  for (auto cost = costs.rbegin(); cost != costs.rend(); ++cost) {
    if (cost->tier != tier) continue;
    expected.longest = std::max(expected.longest, cost->takes);
    if (times.size() == kKept) continue;
    times.push_back(cost->takes);
    expected.stop += cost->stop;
    expected.written += cost->written;
  }
  if (times.empty()) return std::nullopt;
  expected.stop /= std::ssize(times);
  expected.written.value /= std::ssize(times);
  expected.takes = Median(std::move(times));
  return expected;
}

}  // namespace siding
