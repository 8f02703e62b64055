// The way back: which of the jobs that made way go on now, where, and whether in place or elsewhere.
//
// By priority, then who has stood still longest, then by id. Each in turn:
//   - a frozen job goes on where it is as soon as its slots and GPUs are free there. While they are not, it
//     moves to other nodes if that is sooner: if what holds them is expected to stay for longer than it takes
//     to dump and restore the job;
//   - a parked job goes to the nodes where its image lies if it lies nowhere else; otherwise to where it ran
//     before, then to the nodes with the least left over. Nodes that another frozen or tied job needs are
//     taken only when there are no others: it can go nowhere else.
// A job that finds no place holds nobody back here: those behind it are smaller, or have places of their own.
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
  std::vector<NodeId> nodes;  // by rank; kMove: where it is to go on
};

// `room`: what is free on each node if every frozen job had its slots back; below zero where others use them.
// `held_until`: when those who hold a node are expected to leave it; a node that is not in it is not held by
// anybody who will.
std::vector<WayBack> PlanWayBack(std::vector<Returning> jobs, std::map<NodeId, Resources> room,
                                 const std::map<NodeId, Time>& held_until, Time now);

}  // namespace siding
