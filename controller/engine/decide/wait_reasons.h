// Why a job does not start, or does not do what it was told: for users, who see it beside the job's state.
//
// Used under the engine's lock.
#pragma once

#include <string>

#include "controller/engine/decide/batch_queue.h"
#include "controller/engine/decide/planning.h"
#include "controller/engine/decide/recovery.h"
#include "controller/engine/state/context.h"

namespace siding {

class WaitReasons {
 public:
  WaitReasons(const Context& c, Recovery& recovery, const Planning& planning, BatchQueue& batch)
      : state_(c.state),
        policy_(c.policy),
        clock_(c.clock),
        startup_(c.startup),
        cluster_(c.cluster),
        accounts_(c.accounts),
        recovery_(recovery),
        planning_(planning),
        batch_(batch) {}

  // Empty: it waits for nothing.
  std::string WhyWaits(const JobRecord& job) const;

 private:
  std::string WhyNotYet(const JobRecord& job) const;
  std::string OnlyWhere(const JobRecord& job) const;
  std::string WhyInQueue(const JobRecord& job) const;
  std::string WhatIsFree(const JobSpec& spec) const;
  std::string WhyRequestWaits(const JobRecord& job) const;
  std::string UntilWhoEnds(const Plan& plan) const;
  std::string WhyHangs(const JobRecord& job) const;
  std::string WhoIsAway(const JobRecord& job) const;
  std::string WhatIsFaulty(const std::vector<NodeId>& nodes) const;

  const ClusterState& state_;
  const Policy& policy_;
  const Clock& clock_;
  const StartUp& startup_;
  const ClusterView& cluster_;
  const NodeAccounts& accounts_;
  Recovery& recovery_;
  const Planning& planning_;
  BatchQueue& batch_;
};

}  // namespace siding
