// What a pod's user asks of siding, by labels and annotations under "siding.dev/". Pure.
//
//   preemptible          suspend,checkpoint,kill: how it may make way; it is batch work then
//   checkpoint-interval  10m: it is saved so often even if nobody wants its node
//   max-preemptions      3
//   start-by             the deadline: 2026-05-01T12:00:00Z, or +60s after the pod was made
//   not-before           as start-by: nothing is given to it earlier
//   walltime             10m: how long it stays, of one with a deadline
//   notice               30s: so long before it makes way its processes are told: not yet
//   gang, gang-size      a name in the namespace and a number: these pods start together, or none does
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "controller/platform/kubernetes/objects/pod.h"
#include "model/job.h"

namespace siding::kubernetes {

inline constexpr int kLargestGang = 10'000;

struct Ask {
  MethodSet methods;
  std::optional<Time> start_by;
  std::optional<Time> not_before;
  Duration walltime{0};
  Duration notice{0};
  Duration checkpoint_interval{0};
  std::optional<int> max_preemptions;
  std::string gang;  // "": it is alone
  int gang_size = 1;
};

// Nothing: it asks nothing, and siding leaves it alone. What siding itself has written is not looked at.
// kInvalidArgument names the annotation and what was expected: siding leaves the pod alone until its user has
// mended it.
absl::StatusOr<std::optional<Ask>> AskOf(const Pod& pod);
// Of a pod with a deadline: siding chooses its node, and plans with all that it requests. The same error if
// not. `let_go`: it waited, and siding has let it go.
absl::Status CheckDeadline(const Pod& pod, bool let_go = false);

}  // namespace siding::kubernetes
