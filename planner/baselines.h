// What other schedulers do when a job needs nodes, for comparison: victims in an order, until there are
// enough nodes. None of them looks at when the nodes will be free, so a plan is feasible if there are victims
// enough; `predicted_start` says what comes of it.
//
//   slurm-preempt         PreemptType=preempt/qos, PreemptMode=REQUEUE: by priority, the lowest first, then
//   the
//                         smallest job; each is ended. Jobs that the rest makes unnecessary are not put back.
//                         (slurm.conf(5), PreemptMode; Slurm's preemption guide)
//   slurm-youngest-first  the same with PreemptParameters=youngest_first: then the job that was started last.
//   pbs-order             preempt_order SCR, preempt_sort min_time_since_start: by priority, then the job
//   that was
//                         started last; each is suspended if its memory fits beside the request, else
//                         checkpointed, else requeued. (PBS Professional Administrator's Guide, "Using
//                         Preemption")
//   kueue-classical       by priority, then the job admitted last; taken until the request fits, then put
//   back in
//                         reverse as far as it still fits. (Kueue's documentation, "Preemption")
#pragma once

#include "model/plan.h"
#include "model/policy.h"
#include "model/snapshot.h"

namespace siding {

// policy.strategy must not be kLeastLoss. Guards, classes and methods of the policy hold as for MakePlan.
Plan MakeBaselinePlan(const Snapshot& snapshot, const Request& request, const Policy& policy);

}  // namespace siding
