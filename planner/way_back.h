// The way back: which of the jobs that made way continue now, where, and whether in place or elsewhere.
//
// By priority, then the time without nodes, longest first, then by id. Each in turn:
//   - a frozen job continues where it is as soon as its slots and GPUs are free there. While they are not, it
//     moves to other nodes if that is sooner: if what holds them is expected to stay for longer than it takes
//     to dump and restore the job;
//   - a parked job goes to the nodes where its image lies if it lies nowhere else; otherwise to where it ran
//     before, then to the nodes with the least left over. Nodes that another frozen or tied job needs are
//     taken only when there are no others: it can be restored nowhere else.
// A job that finds no place holds no other back: those behind it are smaller, or have places of their own.
#pragma once

#include <map>
#include <vector>

#include "common/ids.h"
#include "common/units.h"
#include "model/job.h"

namespace siding {

// A job that made way and has not come back.
struct Returning {
  JobId id;
  int priority = 0;
  Time stopped;
  Resources per_node;
  int nodes = 1;
  std::vector<NodeId> frozen_on;  // by rank; empty: parked
  std::vector<NodeId> tied_to;    // by rank: the only nodes where it can be restored; empty: anywhere
  std::vector<NodeId> was_on;     // where it ran before; may be empty
  Duration move{0};               // to dump it and restore it elsewhere, while it is frozen; 0: impossible
};

struct WayBack {
  enum class Action { kResume, kRestore, kMove };
  JobId job;
  Action action = Action::kResume;
  std::vector<NodeId> nodes;  // by rank; kMove: where it is to continue
};

// `room`: what is free on each node if every frozen job had its slots back; below zero where others use them.
// `held_until`: when the jobs that hold a node are expected to leave it; a node that is not in it is not held
// by any that will. `to_continue`: as `room`, on nodes that only what is frozen there may have.
std::vector<WayBack> PlanWayBack(std::vector<Returning> jobs, std::map<NodeId, Resources> room,
                                 const std::map<NodeId, Time>& held_until, Time now,
                                 const std::map<NodeId, Resources>& to_continue = {});

}  // namespace siding
