// Whether the plan of a request still holds, or could start sooner.
//
// Used under the engine's lock.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "controller/engine/decide/planning.h"
#include "controller/engine/state/context.h"

namespace siding {

class PlanWatch {
 public:
  PlanWatch(const Context& c, const Planning& planning)
      : state_(c.state),
        policy_(c.policy),
        clock_(c.clock),
        platform_(c.platform),
        startup_(c.startup),
        cluster_(c.cluster),
        manager_(c.manager),
        tiers_(c.tiers),
        accounts_(c.accounts),
        planning_(planning) {}

  void Forget(JobId request) {
    in_doubt_.erase(request);
    not_waited_for_.erase(request);
  }

  // A request that was admitted, and whose plan does not hold any more, or could start sooner; null: it is
  // none. One that waits its turn is served as soon as possible only where the policy says so, or in time.
  // Nobody is planned for while the cluster manager is not heard.
  const JobRecord* WantsAnotherPlan(JobId id);
  // It waits in the manager's queue like any other, as its deadline could not be met and the policy serves
  // nobody late: it is planned for only where it can be met after all.
  bool IsServedInTimeOnly(const JobRecord& request) const;
  // Every planned node is free, or held only by jobs that are on their way off it, or will be as soon as they
  // run or at a time that is still to come.
  bool StillHolds(const JobRecord& request, const Plan& plan) const;
  // Or would, but for nodes on which a start has failed, and on which the next one may be made in a moment.
  bool HoldsInAMoment(const JobRecord& request, const Plan& plan) const;
  // A victim is slower than predicted, so the deadline will be missed by waiting for it. A plan that was late
  // when it was made is not made again: there was none better.
  bool RunsLate(const JobRecord& request, const Plan& plan) const;
  // The request's plan has been replaced.
  void NotePlanned(const JobRecord& request);
  // A node of the cluster manager's is not there, or not known, for a moment, which a request with that
  // deadline can wait.
  bool IsAnyBrieflyAway(Time start_by) const;

 private:
  // Whom the plan need not wait for any more: those that it awaited and that are gone, and victims that have
  // been saved.
  std::set<JobId> NotWaitedFor(const Plan& plan) const;
  bool WillLeave(const Plan& plan, const JobRecord& job) const;
  bool CannotBeMade(const PlanStep& early, const JobRecord& job) const;
  bool HasFailed(const JobRecord& request, const Plan& plan);
  using IsExcused = std::function<bool(const NodeId&)>;  // a planned node that is not usable
  std::set<const JobRecord*> LeavingFor(const Plan& plan) const;
  bool Holds(const JobRecord& request, const Plan& plan, const IsExcused& is_excused) const;
  bool IsBrieflyAway(const NodeId& node, Time start_by) const;
  bool IsTriedInAMoment(const NodeId& node) const;
  bool CouldBeSooner(const JobRecord& request) const;

  const ClusterState& state_;
  const Policy& policy_;
  const Clock& clock_;
  const Platform& platform_;
  const StartUp& startup_;
  const ClusterView& cluster_;
  const ManagerView& manager_;
  const TierRoom& tiers_;
  const NodeAccounts& accounts_;
  const Planning& planning_;
  std::map<JobId, std::set<JobId>> not_waited_for_;  // of requests, when they were last planned for
  std::map<JobId, Time> in_doubt_;                   // requests whose plans do not hold, since when
};

}  // namespace siding
