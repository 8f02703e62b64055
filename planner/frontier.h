// Which nodes can be freed by which moments, and by which jobs leaving: the covering problem of cover.h.
//
// Where jobs have nodes to themselves, each is a group of the covering problem and its options are the
// choices. Jobs that share nodes, directly or through others, are one group: component.h finds its choices.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/cover.h"
#include "planner/options.h"

namespace siding {

// Each takes two rows of the covering problem, and two are for what is common to all.
inline constexpr int kMostDeadlines = (kMostRows - 2) / 2;

// What can be written to shared storage by a moment, in steps.
struct Budget {
  int steps = 0;
  double bytes_per_step = 0;
  // Rounded up: a plan is never found to fit that does not. Each victim so wastes less than one step.
  int StepsFor(Bytes bytes) const;
};

// A moment by which nodes are wanted, counted from the arrival.
struct Deadline {
  Duration within{0};
  int nodes = 0;  // wanted by then, those of earlier deadlines included
  Budget shared;  // from the arrival to then
};

struct Problem {
  const Snapshot& snapshot;
  const std::vector<Candidate>& candidates;
  Resources per_node;           // that each node wanted has to have free
  std::vector<JobId> requests;  // who wants them: jobs that are leaving for one of these leave for us
  Time arrival;
  std::vector<Deadline> deadlines;  // ascending, at most kMostDeadlines
  Budget early;                     // of shared storage, from now to the arrival
};

struct Victim {
  int candidate = 0;  // index into the candidates
  int option = 0;
  int by = 0;  // index of the deadline by which it has to be gone
};

struct FrontierChoice {
  CoverChoice cover;
  std::vector<Victim> victims;
};

struct Frontier {
  bool exact = true;                                // no component had too many choices to look at all
  std::vector<int> demand;                          // by row
  std::vector<std::vector<FrontierChoice>> groups;  // per component
  std::optional<FrontierChoice> known;              // one that meets the demand, if one was found quickly
};

// For SolveCover(), with Frontier::demand.
std::vector<CoverGroup> GroupsOf(const Frontier& frontier);

struct Solution {
  bool found = false;
  bool exact = true;  // proven: nothing loses less, or, if none was found, there is none
  std::vector<Victim> victims;
};
// The cheapest of what the frontier has, its known one included.
Solution Solve(const Frontier& frontier);

// What may still be looked at: ways to leave that are tried, nodes' loads in combinations, and pairs of those
// that are compared. Counted, so that the same problem always has the same answer.
struct Effort {
  int64_t left = 20'000'000;
};

// A component of so many jobs is large: the nodes that need be considered are found first (core.h). Where
// jobs on two nodes tie them, all combinations of 25 are too many to be looked at, and take 100 ms.
inline constexpr size_t kLargeComponent = 12;

// What can be part of a cheapest selection. Where too many jobs depend on one another for that, and one that
// meets the demand is known: what can be part of one of less loss.
Frontier MakeFrontier(const Problem& problem, Effort& effort, size_t large = kLargeComponent);

// Whether the demand can be met; nullopt: not as far as has been looked, which proves nothing.
std::optional<bool> CanMeetDemand(const Problem& problem, Effort& effort);

}  // namespace siding
