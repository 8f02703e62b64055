// An order by hand, and what it would do if it were given now. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "common/units.h"
#include "model/event.h"

namespace siding {

struct Action {
  enum class What : uint8_t { kHand, kKill, kCordon };
  What what = What::kHand;
  JobId job;        // but for kCordon
  HandOrder order;  // kHand
  NodeId node;      // kCordon
};

// Of a request that waits for its nodes.
struct DeadlineChange {
  JobId request;
  Time start_by;
  std::optional<Time> before, after;  // predicted starts; none: it could not be served
};

struct ActionPlan {
  int64_t seq = 0;  // of the first event that it does not know; never 0
  Time made;
  JobId job;
  std::vector<NodeId> nodes;   // that the job is on; kCordon: the node
  std::vector<NodeId> target;  // where it goes on, by rank; empty: it is not said
  std::optional<Method> method;
  Tier tier = Tier::kShared;
  Bytes bytes;                            // of the image
  Time begins;                            // when a save that is under way has ended; 0: at once, or unknown
  Time done;                              // predicted; of an end the latest; 0: not known
  double loss_node_seconds = 0;           // without the time until it is resumed, or has nodes again
  std::vector<JobId> stay;                // kCordon: that have the node, and keep it
  std::vector<DeadlineChange> deadlines;  // the next ones first; none if `done` is not known
  std::vector<JobId> left_out;            // the other requests
};

}  // namespace siding
