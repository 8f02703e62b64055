// Jobs whose time is over: by what they have asked for, or by what their user may have in a day.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "controller/engine/impl.h"

namespace siding {

// The user's quota ends those first that have had more than they said: what others of the user's were
// promised is theirs.
std::string Engine::Impl::WhyOverdue(const JobRecord& job) const {
  if (job.preemptible_since) return "";
  // From before walltimes were limits: what such a job said was a forecast.
  if (job.spec.hold > Duration(0) && job.spec.walltime == Duration(0)) return "";
  const Duration ran = RanFor(job, clock_.Now()), walltime = job.spec.walltime;
  if (walltime > Duration(0) && ran >= walltime)
    return absl::StrCat("walltime of ", FormatDuration(walltime), " is over");
  if (!IsRequest(job) || ran <= HoldOf(job.spec)) return "";
  const OnDemandRule* rule = policy_.RuleFor(job.spec);
  if (rule == nullptr || !rule->node_hours_per_day || NodeHoursOf(job.spec.uid) <= *rule->node_hours_per_day)
    return "";
  return absl::StrCat("the ", *rule->node_hours_per_day, " node-hours a day of ", job.spec.user,
                      " are used up (node_hours_per_day)");
}

// All of its ranks that have not exited are seen running, by agents that are there to say so.
bool Engine::Impl::IsSeenRunning(const JobRecord& job) const {
  const std::vector<int> ranks = LiveRanks(job);
  return std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
    const TaskSeen seen = Seen(job, rank);
    return seen.connected && seen.known && seen.phase() == v1::RUNNING;
  });
}

// A cluster manager has limits of its own. Whatever else is under way with the job comes to its end first. A
// job that nobody sees may have been down with its node, and has not had the time that has passed.
bool Engine::Impl::EndOverdue(JobRecord& job) {
  if (job.state != JobState::kRunning || IsHosted(job)) return false;
  if (IsCatchingUp() || clock_.Now() < agents_back_at_ || !IsSeenRunning(job)) return false;
  std::string why = WhyOverdue(job);
  if (why.empty()) return false;
  if (IsRequest(job) && policy_.after_walltime == AfterWalltime::kPreemptible) {
    Record(job.id, BecamePreemptible{std::move(why)});
    return true;
  }
  JobMoved move;
  move.event = JobEvent::kOrderKill;
  move.for_good = move.over_limit = true;
  move.predicted = clock_.Now() + job.spec.kill_grace;
  move.reason = std::move(why);
  Move(job, std::move(move));
  return true;
}

}  // namespace siding
