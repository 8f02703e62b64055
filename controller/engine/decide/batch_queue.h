// The queue of jobs that wait for nodes: batch jobs, parked jobs, and requests that wait their turn.
//
// Used under the engine's lock.
#pragma once

#include <map>
#include <vector>

#include "controller/engine/decide/planning.h"
#include "controller/engine/decide/recovery.h"
#include "controller/engine/state/context.h"
#include "controller/platform/platform.h"

namespace siding {

// Pure. What those that wait are placed with, now or at a moment to come.
//
// Some nodes are kept entirely free for future requests, as many as `headroom`. Not the only nodes on which a
// waiting job can continue: it would wait for ever.
std::vector<NodeRoom> WithoutHeadroom(const std::map<NodeId, Resources>& room,
                                      const std::vector<Waiting>& waiting,
                                      const std::map<NodeId, Resources>& capacities, int headroom);
// A job that does not fit even on empty nodes waits for new nodes, and must not hold back the others.
void DropWhoFitsNowhere(std::vector<Waiting>& waiting, const std::map<NodeId, Resources>& capacities,
                        int headroom);
// Releases count for jobs of which it is known how long they stay.
bool IsAnyLimited(const std::vector<Waiting>& waiting);

class BatchQueue {
 public:
  BatchQueue(const Context& c, Recovery& recovery, const Planning& planning)
      : state_(c.state),
        policy_(c.policy),
        platform_(c.platform),
        cluster_(c.cluster),
        accounts_(c.accounts),
        recorder_(c.recorder),
        recovery_(recovery),
        planning_(planning) {}

  // The first job that waits for room, behind which others wait, as of the last PlaceWaiting(); 0: none.
  JobId head() const { return queue_head_; }

  // Asks the platform which of the waiting jobs start now, and where. True: something was recorded.
  bool PlaceWaiting();
  // By rank: the only nodes where it can be restored, or is to be; empty: anywhere.
  std::vector<NodeId> TiedTo(const JobRecord& job) const;
  // siding's queue gives it nodes, if it need not wait for anything else. Otherwise a cluster manager does,
  // or it is granted what was planned for it.
  bool IsInQueue(const JobRecord& job) const;
  // As the platform is asked about it, but for nodes on which it was tried a moment ago.
  Waiting WaitingOf(const JobRecord& job) const;

 private:
  bool ContinuesFromImage(const JobRecord& job) const;
  std::vector<NodeId> WithoutExited(const JobRecord& job, std::vector<NodeId> tied) const;
  std::vector<NodeId> VacatedBy(const JobRecord& job) const;
  void AddReleases(std::vector<NodeRoom>& room) const;

  const ClusterState& state_;
  const Policy& policy_;
  Platform& platform_;
  const ClusterView& cluster_;
  const NodeAccounts& accounts_;
  Recorder& recorder_;
  Recovery& recovery_;
  const Planning& planning_;
  JobId queue_head_;  // see head()
};

}  // namespace siding
