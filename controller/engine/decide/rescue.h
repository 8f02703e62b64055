// Jobs that a cluster manager preempts by itself: it has told them to make way and will end them at a time
// that it names. Those that can be saved until then are saved, the most valuable first.
//
// Used under the engine's lock.
#pragma once

#include <vector>

#include "controller/engine/decide/checkpoints.h"
#include "controller/engine/decide/planning.h"
#include "controller/engine/state/context.h"

namespace siding {

class Rescue {
 public:
  struct Doomed {
    const JobRecord* job;
    Time by;
  };

  Rescue(const Context& c, const Planning& planning, Checkpoints& checkpoints)
      : state_(c.state),
        clock_(c.clock),
        cluster_(c.cluster),
        manager_(c.manager),
        tiers_(c.tiers),
        recorder_(c.recorder),
        planning_(planning),
        checkpoints_(checkpoints) {}

  // Orders checkpoints of jobs that their cluster manager is about to end. The shared tier has limited
  // bandwidth, and may be full: a job that would not be written there in time writes to the disks of its own
  // nodes, if it can come back to them, or saves itself.
  void SaveDoomed();

 private:
  std::vector<Doomed> WhoIsDoomed();
  bool OrderRescue(const JobRecord& job, JobMoved move, Time by);

  const ClusterState& state_;
  const Clock& clock_;
  const ClusterView& cluster_;
  const ManagerView& manager_;
  const TierRoom& tiers_;
  Recorder& recorder_;
  const Planning& planning_;
  Checkpoints& checkpoints_;
};

}  // namespace siding
