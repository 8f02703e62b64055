// What jobs add up to: their tallies, and what of those was when.
#pragma once

#include <optional>

#include "controller/engine/state/cluster_state.h"

namespace siding {

void AddTo(Tally& tally, const JobRecord& job);
// Of all jobs that there have ever been, as far as it is kept.
Trends TrendsOf(const DurableState& state, Time now);

// What one event adds to its job's trends, by the state before it and after it. A replay counts the same.
class TrendCount {
 public:
  // Before the event is applied, which must outlive it.
  TrendCount(const DurableState& before, const Event& event);
  // The event is applied; `job` is the one that it is of.
  void Record(const DurableState& after, JobRecord& job) const;

 private:
  void LookAt(const JobRecord& job, const JobMoved& move);

  const Event& event_;
  Tally tally_;
  std::optional<LossBy> left_by_;  // how the job leaves its nodes; nothing: it does not
  std::optional<int> released_;    // the step of the ratio by which an order has freed them
  std::optional<CheckpointId> being_made_;
  Duration notice_{0};
};

}  // namespace siding
