#include "model/checkpoint_cost.h"

#include <algorithm>

namespace siding {
namespace {

constexpr size_t kKept = 10;
// They are like no others.
constexpr size_t kFirst = 2;
constexpr int kLongestFor = 100;

// The lower of the two in the middle, if there are two.
Duration Median(std::vector<Duration> values) {
  const auto middle = values.begin() + (std::ssize(values) - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Sum {
  void Add(const CheckpointCost& cost) {
    stop += cost.stop;
    written += cost.written;
    ++images;
  }
  // Of none, 0.
  Duration MeanStop() const { return stop / std::max<int64_t>(1, images); }
  Bytes MeanWritten() const { return Bytes{written.value / std::max<int64_t>(1, images)}; }

  Duration stop{0};
  Bytes written;
  int64_t images = 0;
};

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
  std::vector<const CheckpointCost*> last;
  for (const CheckpointCost& cost : costs) {
    if (cost.tier != tier) continue;
    expected.longest = std::max(expected.longest, cost.takes);
    last.push_back(&cost);
  }
  if (last.empty()) return std::nullopt;
  if (last.size() > kKept) last.erase(last.begin());

  std::vector<Duration> times;
  Sum all, later;
  bool ran_on = true;
  for (size_t i = 0; i < last.size(); ++i) {
    times.push_back(last[i]->takes);
    all.Add(*last[i]);
    if (i >= kFirst) later.Add(*last[i]);
    ran_on &= last[i]->ran_on;
  }
  expected.stop = all.MeanStop();
  expected.written = all.MeanWritten();
  expected.takes = Median(std::move(times));

  const Sum& missing = ran_on ? later : all;
  const int64_t of = static_cast<int64_t>(kKept), more = of - all.images;
  expected.stop_due = (all.stop + more * missing.MeanStop()) / of;
  expected.written_due = Bytes{(all.written.value + more * missing.MeanWritten().value) / of};
  return expected;
}

}  // namespace siding
