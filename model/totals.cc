#include "model/totals.h"

#include <algorithm>

namespace siding {
namespace {

void Add(Histogram& sum, const Histogram& other) {
  for (const auto& [bound, count] : other.counts) sum.counts[bound] += count;
  sum.sum += other.sum;
}

void Add(std::map<Tier, ImageTotals>& sum, const std::map<Tier, ImageTotals>& other) {
  for (const auto& [tier, images] : other) {
    ImageTotals& all = sum[tier];
    Add(all.ms, images.ms);
    Add(all.bytes, images.bytes);
  }
}

}  // namespace

std::string ToString(JobAction action) {
  switch (action) {
    case JobAction::kStart:
      return "start";
    case JobAction::kSuspend:
      return "suspend";
    case JobAction::kResume:
      return "resume";
    case JobAction::kCheckpoint:
      return "checkpoint";
    case JobAction::kSave:
      return "save";
    case JobAction::kKill:
      return "kill";
    case JobAction::kRestore:
      break;
  }
  return "restore";
}

std::optional<JobAction> ParseJobAction(const std::string& name) {
  for (const JobAction action : kAllJobActions) {
    if (ToString(action) == name) return action;
  }
  return std::nullopt;
}

void Observe(Histogram& histogram, Bounds bounds, int64_t value) {
  const auto bound = std::lower_bound(bounds.begin(), bounds.end(), value);
  ++histogram.counts[bound == bounds.end() ? kNoBound : *bound];
  histogram.sum += value;
}

int64_t CountUpTo(const Histogram& histogram, int64_t bound) {
  int64_t all = 0;
  for (const auto& [upper, count] : histogram.counts) {
    if (upper <= bound) all += count;
  }
  return all;
}

void Add(Totals& sum, const Totals& other) {
  for (const auto& [by, node_ms] : other.lost_node_ms) sum.lost_node_ms[by] += node_ms;
  for (const auto& [action, count] : other.actions) {
    ActionCount& all = sum.actions[action];
    all.done += count.done;
    all.failed += count.failed;
    all.last_failed = std::max(all.last_failed, count.last_failed);
  }
  Add(sum.dumps, other.dumps);
  Add(sum.restores, other.restores);
  Add(sum.release_ratios, other.release_ratios);
  Add(sum.margins, other.margins);
  if (other.last_start > sum.last_start) {
    sum.last_start = other.last_start;
    sum.last_margin = other.last_margin;
  }
  sum.last_missed = std::max(sum.last_missed, other.last_missed);
  sum.exact_plans += other.exact_plans;
  sum.other_plans += other.other_plans;
  Add(sum.victims, other.victims);
}

}  // namespace siding
