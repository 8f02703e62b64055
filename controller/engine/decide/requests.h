// Deadline jobs: planned when they are submitted, granted when their nodes are observed free, planned again
// when what was planned no longer holds.
//
// A request is admitted with a plan (decide/admission.h): the nodes that it gets, and the steps by which jobs
// leave them. Adopt() records the plan and orders the steps that begin now; steps that begin later are
// ordered by Advance() when their time has come. An order is an event of the victim's lifecycle with the
// request's number in it, so after a restart it is known who left for whom. Victims report that they have
// left (observe/), which makes room (state/node_accounts.h), and Advance() grants the nodes when all of them
// are free: never because they were planned to be free by now.
//
// Between the plan and the grant anything may happen. PlanWatch says whether the plan still holds; if not,
// the request is planned again by the next Engine::Impl::ReplanRequests(), without the lock. Victims that are
// no longer needed are called off (WithdrawOrders). Victims that left through RAM are dumped while the
// request has their nodes, without haste: no request waits for their images (DumpFrozen).
//
// Used under the engine's lock.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "controller/engine/decide/checkpoints.h"
#include "controller/engine/decide/plan_bases.h"
#include "controller/engine/decide/plan_watch.h"
#include "controller/engine/decide/planning.h"
#include "controller/engine/decide/recovery.h"
#include "controller/engine/state/context.h"

namespace siding {

class Requests {
 public:
  Requests(const Context& c, Recovery& recovery, const Planning& planning, PlanWatch& watch,
           Checkpoints& checkpoints)
      : state_(c.state),
        policy_(c.policy),
        clock_(c.clock),
        platform_(c.platform),
        cluster_(c.cluster),
        manager_(c.manager),
        accounts_(c.accounts),
        recorder_(c.recorder),
        recovery_(recovery),
        planning_(planning),
        watch_(watch),
        checkpoints_(checkpoints) {}

  // Requests to plan again, each with the number of its plans that were outdated. Empty afterwards.
  std::map<JobId, int> TakeToReplan() { return std::exchange(to_replan_, {}); }
  // What the plan rests on changed while it was made.
  void ReplanLater(JobId request, int attempts) { to_replan_[request] = attempts; }

  // Records the plans, and orders the steps that begin now. `task`: of which they were made.
  void Adopt(std::vector<Plan> plans, SharedTask task);
  // Replaces the plan that it has. An unchanged answer is not worth an event; the next change of the cluster
  // asks again.
  void AdoptInstead(const JobRecord& request, std::vector<Plan> plans, SharedTask task);
  // What the newest plans were made of.
  const PlanBases& bases() const { return bases_; }
  void Forget(JobId request) { bases_.Forget(request); }
  // Orders steps that are due, grants nodes that are free, and notes whom to plan for again. True: something
  // was recorded.
  bool Advance();
  // Dumps jobs that made way through RAM. No request waits for their images, but without one they can
  // continue only where they are.
  void DumpFrozen();
  // A victim that has only been told, whose image is not yet committed, or that was to be ended and could not
  // be so far, continues at once when its nodes are not needed any more: the request is over, has found other
  // nodes, or has another plan.
  void WithdrawOrders();

 private:
  bool MayGoOn(const JobRecord& job) const;
  void Order(const Plan& plan, const PlanStep& step);
  bool OrderWhatIsDue(const JobRecord& request);
  bool MayLeaveNow(const JobRecord& job) const;
  bool Grant(const JobRecord& request);
  bool AbandonUnstarted(const JobRecord& request);
  bool IsFor(const JobRecord& request, const std::vector<NodeId>& nodes) const;
  std::string WhyNobodyMakesWay(const JobRecord& request) const;
  bool RequestNeedsItsNodes(const JobRecord& job) const;

  const ClusterState& state_;
  const Policy& policy_;
  const Clock& clock_;
  const Platform& platform_;
  const ClusterView& cluster_;
  const ManagerView& manager_;
  const NodeAccounts& accounts_;
  Recorder& recorder_;
  Recovery& recovery_;
  const Planning& planning_;
  PlanWatch& watch_;
  Checkpoints& checkpoints_;
  PlanBases bases_;
  std::map<JobId, int> to_replan_;  // and the number of plans that were outdated
};

}  // namespace siding
