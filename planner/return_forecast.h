// "When is it back?": when the way back (way_back.h) and the queue will give nodes to those that wait, if
// each job that holds nodes leaves them when that is known.
//
// What happens is played through, moment by moment: a job leaves; what is free then goes to those that made
// way, in the order of the way back, and what they leave to the queue, in its own order. Who gets nodes holds
// them in turn for as long as is known. Nothing is assumed where nothing is known: a job without a known end
// stays, and who needs its nodes gets no time but the reason.
//
// Two ends are known of a job that holds nodes. By the one it is `expected` to have left: a policy says how
// long jobs on demand usually stay. By the other it will have left `at the latest`, as its walltime ends it.
// Who only waits for ends of the second kind has a `latest` as well. It is no promise: a job that ends sooner
// may let another go first, and what is submitted later is not in it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/ids.h"
#include "common/units.h"
#include "planner/way_back.h"

namespace siding {

enum class BackKind : uint8_t {
  // With a time:
  kFree,      // nodes are free for it
  kWalltime,  // of the last job that is in its way
  kExpected,  // the same, of whose end no more is known than what the policy expects
  kLeaving,   // a job is on its way off its nodes, or it is itself
  kRetry,     // it failed, and is tried again then
  // Without:
  kNoEnd,      // a job is in its way, of whose end nothing is known
  kNodeAway,   // a node that it needs is away, cordoned or faulty
  kTooFew,     // there are fewer nodes than it needs
  kBehind,     // a job is ahead of it, of which no time is known
  kTooMuch,    // too much comes before it to be worked out
  kHeld,       // until somebody releases it
  kDecision,   // until somebody says how it is to go on
  kTasksLeft,  // until tasks of its last start are seen to be gone
  kManager,    // a cluster manager decides when and where it starts
};

struct BackReason {
  BackKind kind = BackKind::kFree;
  JobId job;           // whose end it waits for, or who is ahead; 0: none
  NodeId node;         // on which node; empty: none
  bool image = false;  // it needs this node, for its image, or what is frozen of it, is there alone
};

// When a job that waits has nodes again. That it runs is later: an image has to be read.
struct Back {
  std::optional<Time> predicted;  // none: not known
  std::optional<Time> latest;     // not before `predicted`; none: not known
  std::vector<NodeId> nodes;      // by rank; none without `predicted`
  BackReason because;
};

// How long something lasts, or until when: what is expected, and what will not be exceeded; none: not known.
template <class T>
struct Known {
  std::optional<T> expected, latest;
  BackKind kind = BackKind::kWalltime;  // what `expected` rests on
};

// A job that holds nodes, or a request for which they are kept.
struct Holding {
  JobId job;
  std::vector<NodeId> nodes;
  Resources per_node;  // that it gives back
  Known<Time> until;
  bool request = false;  // those that made way move elsewhere if it stays for long
};

struct Waiter {
  Returning job;
  bool made_way = false;            // else the queue alone gives it nodes
  std::optional<Known<Time>> from;  // it cannot have nodes before; none: it can now
  Known<Duration> stays;            // once it has them
};

// Of the queue: who of these starts now, and where. `held`: who holds nodes then. Must be pure. Not asked
// where nobody who waits finds enough nodes with enough room.
using QueueStart = absl::FunctionRef<std::vector<std::pair<JobId, std::vector<NodeId>>>(
    Time now, const std::set<JobId>& waiting, const std::map<NodeId, Resources>& room,
    const std::vector<const Holding*>& held)>;

struct ReturnBasis {
  Time now;
  std::map<NodeId, Resources> room, to_continue;  // as in way_back.h
  std::map<NodeId, Resources> capacities;         // of the nodes in `room`
  std::vector<Holding> held;
  std::vector<Waiter> waiters;
};

// For each of the waiters. Pure. `effort`: what may be looked at in each of two plays, counted in jobs that
// wait and nodes, each moment anew. Who has no nodes by then is told kTooMuch, or why they never will.
inline constexpr int64_t kForecastEffort = 500'000;
std::map<JobId, Back> ForecastReturns(const ReturnBasis& basis, QueueStart queue,
                                      int64_t effort = kForecastEffort);

}  // namespace siding
