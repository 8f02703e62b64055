// What jobs add up to: their tallies, what of those was when, and what the metrics count.
#pragma once

#include <optional>

#include "controller/engine/state/action_end.h"
#include "controller/engine/state/cluster_state.h"

namespace siding {

void AddTo(Tally& tally, const JobRecord& job);
// Of all jobs that there have ever been, as far as it is kept.
Trends TrendsOf(const DurableState& state, Time now);

// As Tally, of all jobs that there have ever been.
Totals TotalsOf(const DurableState& state);

// What one event adds to its job's trends and totals, by the state before it and after it. A replay counts
// the same.
class TrendCount {
 public:
  // Before the event is applied, which must outlive it.
  TrendCount(const DurableState& before, const Event& event);
  // The event is applied; `job` is the one that it is of.
  void Record(const DurableState& after, JobRecord& job) const;

 private:
  // Of an order that has freed nodes.
  struct Release {
    Duration observed{0}, predicted{0};
  };
  void LookAt(const JobRecord& job, const JobMoved& move);
  // The job has added `trend` to its trends.
  void AddTotals(const DurableState& after, const Trend& trend, JobRecord& job) const;
  void AddStart(JobRecord& job) const;

  const Event& event_;
  Tally tally_;
  std::optional<LossBy> left_by_;  // how the job leaves its nodes; nothing: it does not
  std::optional<Release> released_;
  std::optional<ActionEnd> ended_;
  std::optional<CheckpointId> being_made_;
  CheckpointId restored_from_;
  Time state_since_;
  bool had_started_ = true;
  Duration notice_{0};
};

}  // namespace siding
