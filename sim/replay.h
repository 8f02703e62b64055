// Replays a workload under one strategy: an event loop around the planner and the lifecycle table of the
// controller.
//
// The base scheduler is EASY backfilling (Lifka 1995; Mu'alem and Feitelson 2001): first come, first served;
// the first job that does not fit gets a reservation by the requested times of those that run, and later ones
// may start if they do not delay it. Jobs have their nodes to themselves. On-demand jobs are planned when
// they arrive; those that cannot be served go to the head of the queue. Jobs that made way continue before
// the queue, those that wait longest first: frozen ones where they are as soon as no job runs there, or
// elsewhere if moving is sooner than waiting and there are nodes; the others on any nodes (the rules of
// planner/way_back.h).
//
// Where the policy has most_lost_work, batch jobs are checkpointed on schedule (sim/protection_schedule.h).
// With checkpoint_tier: local a job that was ended has its newest image on the disks of the nodes that it
// had: it continues there, or elsewhere once that is copied into shared storage. So does one whose node fails
// and is back with its disk; other failures take the disk with them (own_disks.cc).
//
// A dump or restore takes the measured time times the job's drawn `speed`, or longer if shared storage is the
// bottleneck: then what is on its way, over the tier's bandwidth.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/lifecycle.h"
#include "sim/draw.h"
#include "sim/strategies.h"

namespace siding::sim {

// What happened, for those who check it.
struct LogEntry {
  enum class What { kTake, kLeave, kSleep, kWake, kDone };  // nodes
  double at = 0;
  int job = 0;
  What what = What::kTake;
  std::vector<int> nodes;
};

struct JobResult {
  JobState state = JobState::kPending;
  double first_start = -1;
  double end = -1;
  int preemptions = 0;
  double redone = 0;              // seconds of work that were done again after it was ended for a request
  double redone_failures = 0;     // the same after failures of nodes
  double dumping = 0;             // seconds in which its nodes wrote its image
  double restoring = 0;           // seconds in which its nodes read it
  double restoring_failures = 0;  // of these, after failures of nodes
  double stopped = 0;             // seconds in which it stood still for images on schedule
  double slowed = 0;              // seconds that page faults have cost it, since it is tracked
  double displaced = 0;           // seconds without nodes, or frozen, after a preemption
  double bytes_written = 0;
  double bytes_copied = 0;  // from nodes' own disks into shared storage
  bool feasible = true;     // on-demand: a plan was found when it arrived
};

struct Replayed {
  std::vector<JobResult> jobs;
  int given_up_nodes = 0;     // by victims, in all
  int used_nodes = 0;         // of these, by the requests that they made way for
  double busy = 0;            // node-seconds of nodes that were held
  double span = 0;            // seconds until the last job ended
  double planning = 0;        // seconds that planning took in all, on this machine
  double interval = 0;        // from one image on schedule to the next, the mean of all jobs that get them
  double copy_interval = 0;   // the same from one copy of such an image to the next
  std::vector<LogEntry> log;  // if asked for
};

Replayed Replay(const Workload& workload, const Strategy& strategy, bool keep_log = false);

}  // namespace siding::sim
