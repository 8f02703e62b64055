// What the newest plans were made of, so that it can be asked later what else could have been done. In memory
// alone, and of so many only: about older plans, and after a restart, nothing is known.
//
// Used under the engine's lock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "controller/engine/decide/tentative_plan.h"

namespace siding {

class PlanBases {
 public:
  // Jobs and nodes in all of them together: some ten megabytes. The newest is kept whatever it has.
  static constexpr size_t kMostViews = 20'000;
  // What one takes beside its jobs and nodes, counted like them.
  static constexpr size_t kOfEach = 64;
  explicit PlanBases(size_t most_views = kMostViews) : most_views_(most_views) {}

  // The plan of the task's first request, of which the request has `number` older ones.
  void Keep(JobId request, size_t number, Plan plan, SharedTask task) {
    newest_.push_back({request, number, {std::move(plan), std::move(task)}});
    while (newest_.size() > 1 && Views() > most_views_) newest_.pop_front();
  }

  void Forget(JobId request) {
    std::erase_if(newest_, [&](const Kept& kept) { return kept.request == request; });
  }

  struct Basis {
    Plan plan;
    SharedTask task;
  };
  std::optional<Basis> Find(JobId request, size_t number) const {
    const auto kept = std::find_if(newest_.rbegin(), newest_.rend(),
                                   [&](const Kept& k) { return k.request == request && k.number == number; });
    return kept == newest_.rend() ? std::nullopt : std::optional(kept->basis);
  }

 private:
  struct Kept {
    JobId request;
    size_t number;
    Basis basis;
  };

  size_t Views() const {
    size_t sum = 0;
    for (const Kept& kept : newest_) {
      const Snapshot& snapshot = kept.basis.task->alone;
      sum += snapshot.jobs.size() + snapshot.nodes.size() + kOfEach;
    }
    return sum;
  }

  const size_t most_views_;
  std::deque<Kept> newest_;  // the oldest first
};

}  // namespace siding
