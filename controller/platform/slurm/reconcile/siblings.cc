#include "controller/platform/slurm/reconcile/siblings.h"

#include <algorithm>

#include "controller/platform/slurm/client/marks.h"

namespace siding::slurm {
namespace {

// Slurm refuses nice values beyond about 2^31.
constexpr int64_t kLeastNice = -2'000'000'000;
constexpr int64_t kLeastShown = 1;  // what it shows of all priorities below, too

bool GoesBefore(const QueueJob& job, const DesiredState& desired) {
  const auto wanted = desired.jobs.find(JobId(job.id.value()));
  if (wanted != desired.jobs.end() && wanted->second.before_siblings) return true;
  const auto mark = MarkOf(job.admin_comment);
  return mark && mark->nice;
}

}  // namespace

Siblings::Siblings(const DesiredState& desired, const std::vector<QueueJob>& jobs, int64_t by_age)
    : by_age_(by_age) {
  const auto comes_back = [](const auto& wanted) { return wanted.second.before_siblings; };
  if (std::none_of(desired.jobs.begin(), desired.jobs.end(), comes_back)) return;  // nobody will ask
  for (const QueueJob& job : jobs) {
    if (job.array == JobNumber() || job.phase != JobPhase::kPending || job.priority == 0) continue;
    // What stands for several is none of them, though it may have the number of one.
    if (job.array_tasks.empty() && GoesBefore(job, desired)) continue;
    waiting_[job.array].push_back(&job);
  }
}

std::optional<int64_t> Siblings::NiceBefore(JobNumber array, int64_t nice, int64_t priority,
                                            int64_t lowered) const {
  const auto siblings = waiting_.find(array);
  if (siblings == waiting_.end()) return {};
  std::optional<int64_t> highest;
  for (const QueueJob* sibling : siblings->second) {
    if (sibling->nice != nice || sibling->priority < priority || sibling->priority > priority + by_age_)
      continue;
    highest = std::max<int64_t>(highest.value_or(0), sibling->priority);
  }
  if (!highest) return {};
  int64_t by = *highest - priority + 1;
  const bool shows = priority + lowered > kLeastShown;
  if (lowered > 0 && !shows) by = std::min(std::max(by, 2 * lowered), by_age_);
  const int64_t before = nice - by;
  if (before < kLeastNice) return {};
  return before;
}

}  // namespace siding::slurm
