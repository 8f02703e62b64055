// Orders for every job: what its recorded state asks for and its tasks do not report yet.
//
// The orders are no part of the record: they follow from the state and from the phase in which each rank was
// seen last, and are sent until an agent reports that they have been carried out. Idempotent: an agent that
// gets an order again reports again. So a restart of the controller is a replay of the journal followed by
// Act() for each job.
//
// What an earlier order still holds is undone first (abort). An order carries the operation's
// number, which grows with every attempt, so that an answer to an earlier attempt is not taken for one to
// this.
//
// Used under the engine's lock.
#pragma once

#include <vector>

#include "controller/engine/act/network_joins.h"
#include "controller/engine/act/orders.h"
#include "controller/engine/state/context.h"

namespace siding {

class JobOrders {
 public:
  JobOrders(const Context& c, Orders& orders)
      : state_(c.state),
        policy_(c.policy),
        clock_(c.clock),
        startup_(c.startup),
        cluster_(c.cluster),
        accounts_(c.accounts),
        orders_(orders) {}

  // Sends the orders that the job's tasks do not report as carried out.
  void Act(const JobRecord& job);

 private:
  // Of a job that keeps its connections: those that have not exited, if all of them are there.
  std::vector<NetworkRank> NetworkRanks(const JobRecord& job) const;
  void PutStart(const JobRecord& job, int rank, v1::ToAgent& command) const;
  // How long work on a job's GPUs may be waited for before a drain; 0: as long as usual.
  Duration LockPatience(const JobRecord& job) const;
  bool MayThaw(const JobRecord& job) const;

  const ClusterState& state_;
  const Policy& policy_;
  const Clock& clock_;
  const StartUp& startup_;
  const ClusterView& cluster_;
  const NodeAccounts& accounts_;
  Orders& orders_;
};

}  // namespace siding
