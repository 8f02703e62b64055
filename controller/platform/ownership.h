// Who does what with a job: siding, or the cluster manager whose job it is.
//
// On a site without a cluster manager siding has the queue and does everything: it chooses nodes, starts and
// ends tasks, makes room for a job that is to continue, and limits its time. Under a cluster manager such as
// Slurm the manager does all of this. There siding only suspends, dumps and restores, and follows what the
// manager does: agents report tasks that the manager has started (observe/managed_tasks.h), the manager's
// queue tells of the rest (observe/managed_queue.h), and what siding wants is handed over as desired state
// (manager.h).
//
// The engine never asks which manager a job has. It asks for the one right that it is about to use, with
// OwnershipOf(job.spec), right before the decision. So a start asks for siding_starts, an end for
// siding_ends, a resume for siding_makes_room, the clock of a walltime for siding_limits. What needs several
// rights asks for each.
//
// A platform that leaves more to siding than Slurm does (kManagedQueue) has a constant of its own, chosen in
// OwnershipOf() by the name of the manager that is in the job's spec.
//
// Plain values; thread-safe.
#pragma once

#include "controller/platform/manager.h"
#include "model/job.h"

namespace siding {

struct Ownership {
  // siding chooses its nodes and starts its tasks. Otherwise it learns from agents and from the manager's
  // queue where the job is, and a job that left its nodes waits in that queue.
  bool siding_starts = true;
  // siding may end it: who made it has it start from the beginning. Otherwise an end is for good: the manager
  // would not start the job again.
  bool siding_ends = true;
  // What a frozen job holds is siding's to give away, so siding has to see that there is room before it
  // continues. Otherwise the manager does both.
  bool siding_makes_room = true;
  // Others are given the place of a frozen job, but for its memory. Otherwise it has all that it requested
  // for as long as it is there.
  bool frozen_gives_way = true;
  // siding ends it when its walltime is over.
  bool siding_limits = true;
  // A request that waits for nodes as they become free waits in a queue, whose owner starts it. Otherwise
  // nobody starts it unless siding plans for it.
  bool queue_starts_requests = true;
};

// Of siding's own queue.
inline constexpr Ownership kOwnQueue;
// Of a cluster manager that starts, ends and limits its jobs itself, as Slurm does.
inline constexpr Ownership kManagedQueue{false, false, false, true, false};

// Of Kubernetes: a pod that is evicted is made again by its owner, a Job for instance.
// One with a deadline names siding as the one who finds its node. What a frozen one has requested its
// scheduler and its kubelet count as taken.
inline constexpr Ownership kEvictedPods{false, true, false, false, false, false};

inline const Ownership& OwnershipOf(const JobSpec& spec) {
  if (spec.cluster_manager.empty()) return kOwnQueue;
  return spec.cluster_manager == kKubernetes ? kEvictedPods : kManagedQueue;
}

}  // namespace siding
