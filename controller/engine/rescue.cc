// Jobs that a cluster manager preempts by itself: it has told them to make way and will end them at a time
// that it names. What can be saved until then is saved, the most valuable first.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "controller/engine/impl.h"

namespace siding {

std::vector<Engine::Impl::Doomed> Engine::Impl::WhoIsDoomed() {
  std::vector<Doomed> doomed;
  for (const auto& [id, job] : state_.unfinished) {
    const ManagedJob* queued = IsHosted(*job) ? QueuedAs(id) : nullptr;
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
bool Engine::Impl::OrderRescue(JobRecord& job, JobMoved move, Time by) {
  if (move.predicted > by) return false;
  move.reason = absl::StrCat(job.spec.cluster_manager, " preempts it");
  Move(job, std::move(move));
  return true;
}

// The shared tier is everybody's: whoever does not fit into what it can take in time after those before him
// writes to his own disks, if he can come back to them, or saves himself.
void Engine::Impl::Rescue() {
  if (state_.queue.jobs.empty()) return;
  const std::vector<Doomed> doomed = WhoIsDoomed();
  if (doomed.empty()) return;
  const Time now = clock_.Now();
  SharedTier shared = TakeSnapshot({}).shared;
  for (const auto& [job, by] : doomed) {
    const Bytes bytes = shared.in_flight + ImageOf(*job);
    if (Can(*job, Method::kCheckpoint)) {
      JobMoved move = OrderDump(*job, Tier::kShared);
      if (shared.bytes_per_second > 0) {
        const double seconds = static_cast<double>(bytes.value) / shared.bytes_per_second;
        move.predicted = std::max(move.predicted, now + FromSeconds(seconds));
      }
      if (OrderRescue(*job, std::move(move), by)) {
        shared.in_flight = bytes;
        continue;
      }
      const bool returns = WhyNotLocal(*job).empty();
      if (returns && OrderRescue(*job, OrderDump(*job, Tier::kLocal), by)) continue;
    }
    if (Can(*job, Method::kApp) && job->spec.app) {
      JobMoved move;
      move.event = JobEvent::kOrderSave;
      move.predicted = now + job->spec.app->grace;
      OrderRescue(*job, std::move(move), by);
    }
  }
}

}  // namespace siding
