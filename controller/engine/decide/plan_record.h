// What is kept of a plan.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/plan.h"

namespace siding {

// So many of the jobs that a plan leaves alone are recorded with their reasons. In a cluster of ten thousand
// jobs the rest would take a megabyte of journal and of memory for every plan, which is never read.
inline constexpr size_t kMostKeptRecorded = 50;

// Of those that a plan leaves alone, no more than that: some of each group, in their order, as long as there
// is room for all groups. The groups say how many there are in all.
inline Plan WithSomeKept(Plan plan, size_t most) {
  if (plan.kept.size() <= most) return plan;
  if (plan.kept_groups.empty()) plan.kept_groups = GroupKept(plan.kept);
  const size_t of_each = std::max<size_t>(1, most / plan.kept_groups.size());
  std::map<decltype(GroupOf(PlanKeep())), size_t> had;
  std::vector<PlanKeep> some;
  for (PlanKeep& keep : plan.kept) {
    size_t& count = had[GroupOf(keep)];
    if (some.size() < most && count++ < of_each) some.push_back(std::move(keep));
  }
  plan.kept = std::move(some);
  return plan;
}

// The plan as it is recorded.
inline Plan ForTheRecord(Plan plan) { return WithSomeKept(std::move(plan), kMostKeptRecorded); }

}  // namespace siding
