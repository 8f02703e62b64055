// Who does what with a job: siding, or the cluster manager whose job it is. The engine asks for the right
// that it is about to use, never for the manager's name.
//
// All cluster managers have the same rights today, so a new one needs nothing here. One that leaves more to
// siding gets a constant of its own, which OwnershipOf() chooses by the name of the manager in the job's
// spec.
#pragma once

#include "model/job.h"

namespace siding {

struct Ownership {
  // siding chooses its nodes and starts its tasks. Otherwise it learns from agents and from the manager's
  // queue where the job is, and a job that left its nodes waits in that queue.
  bool siding_starts = true;
  // siding may end it, or start it from the beginning. Otherwise an end is for good: the manager would not
  // start the job again.
  bool siding_ends = true;
  // What a frozen job holds is siding's to give away, so siding has to see that there is room before it
  // continues. Otherwise the manager does both.
  bool siding_makes_room = true;
  // siding ends it when its walltime is over.
  bool siding_limits = true;
};

// Of siding's own queue.
inline constexpr Ownership kOwnQueue;
// Of a cluster manager that starts, ends and limits its jobs itself, as Slurm does.
inline constexpr Ownership kManagedQueue{false, false, false, false};

inline const Ownership& OwnershipOf(const JobSpec& spec) {
  return spec.cluster_manager.empty() ? kOwnQueue : kManagedQueue;
}

}  // namespace siding
