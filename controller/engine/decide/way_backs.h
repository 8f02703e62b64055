// The way back of jobs that made way: what they are, for planner/way_back.h, and the orders that follow.
//
// Used under the engine's lock.
#pragma once

#include <map>
#include <vector>

#include "controller/engine/decide/admission.h"
#include "controller/engine/decide/checkpoints.h"
#include "controller/engine/decide/recovery.h"
#include "controller/engine/state/context.h"
#include "planner/way_back.h"

namespace siding {

class WayBacks {
 public:
  WayBacks(const Context& c, Recovery& recovery, Admission& admission, Checkpoints& checkpoints)
      : state_(c.state),
        clock_(c.clock),
        cluster_(c.cluster),
        tiers_(c.tiers),
        accounts_(c.accounts),
        recorder_(c.recorder),
        recovery_(recovery),
        admission_(admission),
        checkpoints_(checkpoints) {}

  // Frozen jobs continue or move elsewhere, parked ones are restored. True: something was recorded.
  bool BringBack();
  // Of a job that is frozen or parked, or will be.
  Returning ReturningOf(const JobRecord& job) const;

 private:
  std::vector<Returning> WhoMayReturn() const;
  bool MayReturn(const JobRecord& job) const;
  std::map<NodeId, Time> HeldUntil() const;

  const ClusterState& state_;
  const Clock& clock_;
  const ClusterView& cluster_;
  const TierRoom& tiers_;
  const NodeAccounts& accounts_;
  Recorder& recorder_;
  Recovery& recovery_;
  Admission& admission_;
  Checkpoints& checkpoints_;
};

}  // namespace siding
