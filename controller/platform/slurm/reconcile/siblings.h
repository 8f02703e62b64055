// How an element of an array that was preempted goes before the elements that have not been started yet.
// Pure.
//
// Slurm takes waiting jobs by priority, those of equal priority by the time of their submission. A requeue is
// a new submission, so the element is behind all its siblings, and beside an array's limit (`--array=1-9%2`)
// waits until they have been started, whatever is idle. A nice value just low enough puts it before them.
// Jobs that are before its siblings stay before it.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "controller/platform/manager.h"
#include "controller/platform/slurm/client/values.h"

namespace siding::slurm {

class Siblings {
 public:
  // Those that wait, and that siding itself has not put before others and is not to. `by_age`:
  // Settings::priority_by_age. The jobs must outlive it.
  Siblings(const DesiredState& desired, const std::vector<QueueJob>& jobs, int64_t by_age);

  // The nice value with which this element goes before them, which is less than `nice`; nothing: it does so
  // with `nice`. `nice` is its user's, and `priority` what it has with that. Only siblings of the same nice
  // value count, and none whose priority differs by more than the time that they have waited: somebody
  // has put these where they are. `lowered`: by how much its nice value is less already. Slurm shows no
  // priority below 1, so one that shows as 1 may be far below: then it is lowered by twice as much, until it
  // shows, or to by_age.
  std::optional<int64_t> NiceBefore(JobNumber array, int64_t nice, int64_t priority, int64_t lowered) const;

 private:
  const int64_t by_age_;
  std::map<JobNumber, std::vector<const QueueJob*>> waiting_;  // of each array
};

}  // namespace siding::slurm
