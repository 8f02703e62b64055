// Turns the queue of a cluster manager into events of the lifecycle. The whole life of a deadline job is read
// from the queue, since no agent reports its tasks. Of preemptible jobs the queue shows what agents cannot
// know: how much they hold, and that a job was cancelled while it waited to come back.
//
// Used under the engine's lock.
#pragma once

#include <map>
#include <vector>

#include "controller/engine/decide/admission.h"
#include "controller/engine/decide/plan_watch.h"
#include "controller/engine/decide/planning.h"
#include "controller/engine/decide/requests.h"
#include "controller/engine/observe/managed_tasks.h"
#include "controller/engine/state/context.h"
#include "controller/platform/platform.h"

namespace siding {

class ManagedQueue {
 public:
  ManagedQueue(const Context& c, ManagedTasks& tasks, Admission& admission, const Planning& planning,
               Requests& requests, const PlanWatch& watch)
      : state_(c.state),
        observed_(c.observed),
        clock_(c.clock),
        platform_(c.platform),
        cluster_(c.cluster),
        manager_(c.manager),
        accounts_(c.accounts),
        recorder_(c.recorder),
        agenda_(c.agenda),
        tasks_(tasks),
        admission_(admission),
        planning_(planning),
        requests_(requests),
        watch_(watch) {}

  // What has changed in the queue since the last call; all of it at the first one.
  void OnManager(ManagerChanges changes);
  // Records what the queue says of this job.
  void FollowQueue(JobId id);
  // At every tick: jobs that were cancelled or ended while the queue was not polled, and requests that wait
  // for nodes to be known.
  void FollowWaitingAll();

 private:
  bool MayEnlist(const ManagedJob& queued) const;
  void Enlist(const ManagedJob& queued);
  bool WaitsForNodes(const ManagedJob& queued, const Plan& plan);
  bool TakesLate(const ManagedJob& queued, std::vector<Plan>& plans);
  void TakeNode(ManagedNode node);
  void FollowRequest(const JobRecord& job, const ManagedJob* queued);
  void FollowWaiting(const JobRecord& job, const ManagedJob* queued);

  const ClusterState& state_;
  ObservedState& observed_;
  const Clock& clock_;
  const Platform& platform_;
  const ClusterView& cluster_;
  const ManagerView& manager_;
  NodeAccounts& accounts_;
  Recorder& recorder_;
  Agenda& agenda_;
  ManagedTasks& tasks_;
  Admission& admission_;
  const Planning& planning_;
  Requests& requests_;
  const PlanWatch& watch_;
  std::map<JobId, Time> wait_for_nodes_;  // requests that are not recorded yet, since when
};

}  // namespace siding
