#include "controller/engine/decide/walltime.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"

namespace siding {

bool Walltime::EndOverdue(const JobRecord& job) {
  if (job.state != JobState::kRunning || !OwnershipOf(job.spec).siding_limits) return false;
  if (startup_.IsCatchingUp(clock_.Now()) || clock_.Now() < startup_.agents_back_at ||
      !cluster_.IsSeenRunning(job))
    return false;
  std::string why = WhyOverdue(job);
  if (why.empty()) return false;
  if (IsRequest(job) && policy_.after_walltime == AfterWalltime::kPreemptible) {
    recorder_.Record(job.id, BecamePreemptible{std::move(why)});
    return true;
  }
  JobMoved move;
  move.event = JobEvent::kOrderKill;
  move.for_good = move.over_limit = true;
  move.predicted = clock_.Now() + job.spec.kill_grace;
  move.reason = std::move(why);
  recorder_.Move(job, std::move(move));
  return true;
}

bool Walltime::IsOverdue(const JobRecord& job) const {
  return job.state == JobState::kRunning && OwnershipOf(job.spec).siding_limits && !WhyOverdue(job).empty();
}

// When a user's quota is used up, jobs that exceed their stated time are ended first: the user's other jobs
// keep what they were promised.
std::string Walltime::WhyOverdue(const JobRecord& job) const {
  if (job.preemptible_since) return "";
  // Submitted before walltimes were limits: what such a job stated was a forecast.
  if (job.spec.hold > Duration(0) && job.spec.walltime == Duration(0)) return "";
  const Duration ran = RanFor(job, clock_.Now()), walltime = job.spec.walltime;
  if (walltime > Duration(0) && ran >= walltime)
    return absl::StrCat("walltime of ", FormatDuration(walltime), " is over");
  if (!IsRequest(job) || ran <= admission_.HoldOf(job.spec)) return "";
  const OnDemandRule* rule = policy_.RuleFor(job.spec);
  if (rule == nullptr || !rule->node_hours_per_day ||
      admission_.NodeHoursOf(job.spec.uid) <= *rule->node_hours_per_day)
    return "";
  return absl::StrCat("the ", *rule->node_hours_per_day, " node-hours a day of ", job.spec.user,
                      " are used up (node_hours_per_day)");
}

}  // namespace siding
