#include "model/trends.h"

#include <algorithm>
#include <cmath>

namespace siding {
namespace {

constexpr int kStepsToDouble = 8;
constexpr int kLastStep = 5 * kStepsToDouble;

Time StartOf(Time at, Duration period) { return Time(at.time_since_epoch() / period * period); }

void DropBefore(std::map<Time, Trend>& rows, Time first) {
  rows.erase(rows.begin(), rows.lower_bound(first));
}

void AddRows(std::map<Time, Trend>& rows, const std::map<Time, Trend>& others) {
  for (const auto& [at, trend] : others) Add(rows[at], trend);
}

}  // namespace

std::string ToString(LossBy by) {
  switch (by) {
    case LossBy::kSuspend:
      return "suspend";
    case LossBy::kCheckpoint:
      return "checkpoint";
    case LossBy::kApp:
      return "app";
    case LossBy::kKill:
      return "kill";
    case LossBy::kFailure:
      break;
  }
  return "failure";
}

std::optional<LossBy> ParseLossBy(const std::string& name) {
  for (const LossBy by :
       {LossBy::kSuspend, LossBy::kCheckpoint, LossBy::kApp, LossBy::kKill, LossBy::kFailure}) {
    if (ToString(by) == name) return by;
  }
  return std::nullopt;
}

void Add(Trend& sum, const Trend& other) {
  sum.met += other.met;
  sum.missed += other.missed;
  sum.refused += other.refused;
  sum.preemptions += other.preemptions;
  for (const auto& [by, node_ms] : other.lost_node_ms) sum.lost_node_ms[by] += node_ms;
  for (const auto& [step, times] : other.releases) sum.releases[step] += times;
  for (const auto& [tier, writes] : other.writes) {
    ImageWrites& all = sum.writes[tier];
    all.images += writes.images;
    all.bytes += writes.bytes;
    all.took += writes.took;
  }
}

int RatioStep(Duration observed, Duration predicted) {
  const auto seconds = [](Duration time) { return std::max(1.0, ToSeconds(time)); };
  const double doublings = std::log2(seconds(observed) / seconds(predicted));
  return std::clamp(static_cast<int>(std::lround(doublings * kStepsToDouble)), -kLastStep, kLastStep);
}

double RatioOf(int step) { return std::exp2(static_cast<double>(step) / kStepsToDouble); }

double Quantile(const std::map<int, int64_t>& releases, double share) {
  int64_t all = 0;
  for (const auto& [step, times] : releases) all += times;
  auto left = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(share * static_cast<double>(all))));
  for (const auto& [step, times] : releases) {
    left -= times;
    if (left <= 0) return RatioOf(step);
  }
  return 0;
}

void Add(Trends& trends, Time at, const Trend& what) {
  Add(trends.hours[StartOf(at, kOneHour)], what);
  Add(trends.days[StartOf(at, kOneDay)], what);
}

void Add(Trends& trends, const Trends& other) {
  AddRows(trends.hours, other.hours);
  AddRows(trends.days, other.days);
}

void Trim(Trends& trends, Time now) {
  DropBefore(trends.hours, StartOf(now, kOneHour) - kHoursKept + kOneHour);
  DropBefore(trends.days, StartOf(now, kOneDay) - kDaysKept + kOneDay);
}

}  // namespace siding
