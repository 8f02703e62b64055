// Whether images have room: what agents say is free in their tiers, less what is ordered and not yet written
// there; and tiers that did not take an image though their agents say that they have room.
//
// A tier to which an image could not be written is left alone until its node's next heartbeat says what is
// free there, and that comes a second later or more. Where images fail in a row in spite of what heartbeats
// say (a quota that no file system tells of, a disk that is dying), the time doubles with each, up to a
// minute.
//
// Not thread-safe: used under the engine's lock. What is passed in must outlive it.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "common/clock.h"
#include "controller/engine/state/cluster_state.h"
#include "controller/engine/state/cluster_view.h"

namespace siding {

class TierRoom {
 public:
  // Ordered and not yet written.
  struct UnderWay {
    Bytes shared;
    std::map<NodeId, Bytes> local;
  };

  TierRoom(const ClusterState& state, const ClusterView& cluster) : state_(state), cluster_(cluster) {}

  // What is being copied into shared storage, and is not there yet.
  Bytes LeftToCopy() const;
  // With that, and what is to be written of jobs that are only frozen as yet.
  UnderWay ToBeWritten() const;
  // On this node, less what is to be written.
  Bytes Free(const NodeId& node, Tier tier, const UnderWay& under_way) const;
  // Why no image is written there now, whatever is free; "" if it is.
  std::string ProblemOf(const NodeId& node, Tier tier) const;
  // There is such a problem on a node of the job's.
  bool IsInDoubt(const JobRecord& job, Tier tier) const;
  // Why the job's image would have no room there beside those that are being written, "" if it has.
  std::string WhyNone(const JobRecord& job, Tier tier) const;

 private:
  UnderWay Sum(const std::function<bool(const JobRecord&)>& counts) const;

  const ClusterState& state_;
  const ClusterView& cluster_;
};

}  // namespace siding
