// Jobs that share nodes are not independent: a node is free only when enough of them have left. A component
// is a set of jobs connected by such nodes; this finds every sensible way of clearing them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "planner/frontier.h"

namespace siding {

// What leaving jobs give back to a node, and what they take there. Times in microseconds: those who write
// over the same way of a node do it one after another.
enum Quantity { kSlots, kMemory, kGpus, kFrozen, kLocalDisk, kLocalWriting, kSharedWriting, kEarlyWriting };
inline constexpr int kGiven = 3;  // the quantities before this one are given back, the others are taken
inline constexpr int kQuantities = 8;
using Load = std::array<int64_t, kQuantities>;

// What is to be written by `within`, and not before `before`, has only the time between: it counts as so much
// more. Where all that is so counted fits into the whole time, what begins at any moment or later fits into
// the time from then on.
int64_t Stretched(int64_t amount, Duration before, Duration within);

// `within`: by when it has to be gone.
Load LoadOf(const Option& option, const JobView& job, size_t rank, Duration within);

// Of one node by one deadline.
struct Limits {
  bool wanted = false;  // the node would be of use if it were free, and is not free by itself
  // Of what is given back: as much as is missing. Frozen: with more than this in RAM the node is of no use.
  // Of the others: with more than this the jobs cannot leave that way.
  Load limit{};
};
bool IsFreed(const Limits& limits, const Load& load);

// One way in which a job can leave, by one deadline.
struct Alternative {
  Victim victim;
  CoverChoice charge;  // what it costs and uses; frees nothing by itself
};

Load LoadOf(const Problem& problem, const Alternative& alternative, size_t rank);

// A job's part in its component: where its ranks are and what may be done with it in time.
struct Member {
  int candidate = 0;
  std::vector<int> nodes;  // by rank, index into the component's nodes; -1: nothing there can matter
  std::vector<Alternative> alternatives;
};

struct Component {
  std::vector<Member> members;
  std::vector<int> nodes;      // by index here: their index in the snapshot
  std::vector<Limits> limits;  // node * deadlines + deadline
};

// From the nodes by rank: those that can matter (not below 0), ascending, each once, as two ranks may be on
// one.
std::vector<int> NodesOf(const std::vector<int>& by_rank);

// Adds what the alternative costs and uses. False: there is not so much of what is short (the rows of
// `demand` from `deadlines` on).
bool Charge(const Alternative& alternative, const std::vector<int>& demand, int deadlines,
            CoverChoice& total);

// Adds to the loads of the member's nodes what its leaving changes there, or takes it away (`sign`). `place`:
// by node, where its loads begin, in deadlines.
void AddLoads(const Problem& problem, const Member& member, const Alternative& alternative,
              const std::vector<int>& place, int sign, std::vector<Load>& loads);

struct Enumeration {
  std::vector<FrontierChoice> choices;
  bool exact = true;  // false: too many were possible, so better ones may have been missed
};

// The choices that no other beats in all of nodes freed by each deadline, use of what is short, and cost;
// without the one in which no job leaves. `demand`: see Frontier; rows of what is short limit every choice.
Enumeration Enumerate(const Problem& problem, const Component& component, const std::vector<int>& demand,
                      Effort& effort);

}  // namespace siding
