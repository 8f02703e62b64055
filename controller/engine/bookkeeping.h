// What the engine remembers of what it has said, to agents and to users. Gone with the process.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/units.h"
#include "siding/v1/agent.pb.h"

namespace siding {

// The last command to a task.
struct Sent {
  int64_t op = 0;
  int kind = 0;
  Time at;
};

// A deadline job of which a user was told that it can be kept, before the cluster manager had it.
struct Promised {
  uint32_t uid = 0;
  Time start_by;
  Time made;
};

using Image = std::pair<CheckpointId, int>;  // and rank
struct Deletion {
  int64_t op = 0;  // the same each time it is sent
  Time again_at;   // unless it has been carried out by then
  int failures = 0;
};
struct AskedToDelete {
  Image image;
  NodeId node;
};

// Of a checkpoint's images; done when nobody is left to answer.
struct Verification {
  CheckpointId checkpoint;
  size_t outstanding = 0;
  std::map<int, v1::OpResult> results;  // by rank
  std::vector<std::function<void(std::map<int, v1::OpResult> by_rank)>> waiting;
};
struct AskedToVerify {
  std::shared_ptr<Verification> verification;
  NodeId node;
  int rank = 0;
};

}  // namespace siding
