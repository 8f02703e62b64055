#include "controller/engine/decide/rescue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"

namespace siding {

void Rescue::SaveDoomed() {
  if (state_.queue.jobs.empty()) return;
  const std::vector<Doomed> doomed = WhoIsDoomed();
  if (doomed.empty()) return;
  const Time now = clock_.Now();
  SharedTier shared = planning_.TakeSnapshot({}).shared;
  for (const auto& [job, by] : doomed) {
    const Bytes bytes = shared.in_flight + cluster_.ImageOf(*job);
    if (Can(*job, Method::kCheckpoint)) {
      JobMoved move = checkpoints_.OrderDump(*job, Tier::kShared);
      if (shared.bytes_per_second > 0) {
        const double seconds = static_cast<double>(bytes.value) / shared.bytes_per_second;
        move.predicted = std::max(move.predicted, now + FromSeconds(seconds));
      }
      const bool has_room = tiers_.WhyNone(*job, Tier::kShared).empty();
      if (has_room && OrderRescue(*job, std::move(move), by)) {
        shared.in_flight = bytes;
        continue;
      }
      const bool returns = manager_.WhyNotLocal(*job).empty() && tiers_.WhyNone(*job, Tier::kLocal).empty();
      if (returns && OrderRescue(*job, checkpoints_.OrderDump(*job, Tier::kLocal), by)) continue;
    }
    if (Can(*job, Method::kApp) && job->spec.app) {
      JobMoved move;
      move.event = JobEvent::kOrderSave;
      move.predicted = now + job->spec.app->grace;
      OrderRescue(*job, std::move(move), by);
    }
  }
}

std::vector<Rescue::Doomed> Rescue::WhoIsDoomed() {
  std::vector<Doomed> doomed;
  for (const auto& [id, job] : state_.unfinished) {
    const ManagedJob* queued = OwnershipOf(job->spec).siding_starts ? nullptr : manager_.QueuedAs(id);
    if (queued == nullptr || queued->phase != ManagedPhase::kRunning || !queued->leaves_by) continue;
    if (job->state == JobState::kRunning) doomed.push_back({job, *queued->leaves_by});
  }
  const auto loss = [](const Doomed& d) {
    return static_cast<double>(d.job->spec.nodes) * ToSeconds(d.by - d.job->durable_at);
  };
  std::stable_sort(doomed.begin(), doomed.end(),
                   [&](const Doomed& a, const Doomed& b) { return loss(a) > loss(b); });
  return doomed;
}

// False: it would not be done in time.
bool Rescue::OrderRescue(const JobRecord& job, JobMoved move, Time by) {
  if (move.predicted > by) return false;
  move.reason = absl::StrCat(job.spec.cluster_manager, " preempts it");
  recorder_.Move(job, std::move(move));
  return true;
}

}  // namespace siding
