// What is kept of a plan.
#pragma once

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "model/plan.h"

namespace siding {

// So many of the jobs that a plan leaves alone are recorded with their reasons. In a cluster of ten thousand
// jobs the rest would take a megabyte of journal and of memory for every plan, which is never read.
inline constexpr size_t kMostKeptRecorded = 50;

// The plan as it is recorded; the last of the jobs that are named says how many are not.
inline Plan ForTheRecord(Plan plan) {
  if (plan.kept.size() <= kMostKeptRecorded) return plan;
  const size_t others = plan.kept.size() - kMostKeptRecorded;
  plan.kept.resize(kMostKeptRecorded);
  absl::StrAppend(&plan.kept.back().reason, "; ", others, others == 1 ? " other job is" : " other jobs are",
                  " left alone as well");
  return plan;
}

}  // namespace siding
