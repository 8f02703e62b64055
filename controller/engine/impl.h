// The engine's inside: its parts, and the loop that drives them. Only engine.cc and loop.cc include it.
//
//   state/    what is known: the recorded state, what was observed, questions about both, and the recorder
//   observe/  what agents and cluster managers say -> events
//   decide/   what follows from the state: requests, the queue, checkpoints, the way back -> events
//   act/      the recorded state, and what was last observed -> orders
//
// Every public call is: lock; decide (Recorder::Record ...); Advance(). Advance() repeats observe and decide
// until nothing is recorded any more, makes the events durable, and only then sends orders.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/mutex.h"
#include "controller/engine/act/copy_orders.h"
#include "controller/engine/act/deletions.h"
#include "controller/engine/act/desired_state.h"
#include "controller/engine/act/job_orders.h"
#include "controller/engine/act/orders.h"
#include "controller/engine/act/step_networks.h"
#include "controller/engine/act/strays.h"
#include "controller/engine/act/verifications.h"
#include "controller/engine/decide/action_plans.h"
#include "controller/engine/decide/admission.h"
#include "controller/engine/decide/batch_queue.h"
#include "controller/engine/decide/checkpoints.h"
#include "controller/engine/decide/copied_images.h"
#include "controller/engine/decide/ended_jobs.h"
#include "controller/engine/decide/hand_orders.h"
#include "controller/engine/decide/image_quota.h"
#include "controller/engine/decide/node_loss.h"
#include "controller/engine/decide/plan_watch.h"
#include "controller/engine/decide/planning.h"
#include "controller/engine/decide/rate_limits.h"
#include "controller/engine/decide/recovery.h"
#include "controller/engine/decide/requests.h"
#include "controller/engine/decide/rescue.h"
#include "controller/engine/decide/return_forecasts.h"
#include "controller/engine/decide/tentative_plan.h"
#include "controller/engine/decide/verbs.h"
#include "controller/engine/decide/wait_reasons.h"
#include "controller/engine/decide/walltime.h"
#include "controller/engine/decide/way_backs.h"
#include "controller/engine/engine.h"
#include "controller/engine/observe/agent_reports.h"
#include "controller/engine/observe/copy_recovery.h"
#include "controller/engine/observe/expiries.h"
#include "controller/engine/observe/inbox.h"
#include "controller/engine/observe/job_observer.h"
#include "controller/engine/observe/managed_queue.h"
#include "controller/engine/observe/managed_tasks.h"
#include "controller/engine/observe/node_faults.h"
#include "controller/engine/observe/silence.h"
#include "controller/engine/observe/stragglers.h"
#include "controller/engine/state/context.h"
#include "controller/engine/throttle.h"

namespace siding {

// What is known.
struct EngineState {
  EngineState(Policy p, Journal& journal, Platform& platform, const Clock& clock, LimitedLog& limited_log)
      : policy(std::move(p)),
        cluster(state),
        manager(state, policy, clock, platform, cluster),
        tiers(state, cluster),
        starts(state, cluster),
        accounts(state, clock, cluster, manager, starts),
        recorder(state, journal, clock, accounts, starts, agenda),
        context{state,   state,   policy, retention, clock,  platform, startup,    agenda,
                cluster, manager, tiers,  accounts,  starts, recorder, limited_log} {}

  ClusterState state;
  Policy policy;
  Retention retention;
  StartUp startup;
  Agenda agenda;
  ClusterView cluster;
  ManagerView manager;
  TierRoom tiers;
  PendingStarts starts;
  NodeAccounts accounts;
  Recorder recorder;
  Context context;
};

// What follows from it.
struct Deciders {
  explicit Deciders(const Context& c)
      : recovery(c),
        schedule(c),
        planning(c, schedule),
        quota(c),
        checkpoints(c, quota, schedule),
        watch(c, planning),
        requests(c, recovery, planning, watch, checkpoints),
        admission(c, planning, requests),
        batch(c, recovery, planning),
        way_backs(c, recovery, admission, checkpoints),
        copied(c, schedule),
        ended(c),
        walltime(c, admission),
        rescue(c, planning, checkpoints),
        node_loss(c),
        verbs(c, recovery, checkpoints, admission),
        hand(c, verbs, quota, checkpoints, walltime),
        actions(c, verbs, planning, quota),
        waits(c, recovery, planning, batch),
        returns(c, recovery, planning, admission, batch, way_backs) {}

  Recovery recovery;
  CheckpointSchedule schedule;
  Planning planning;
  ImageQuota quota;
  Checkpoints checkpoints;
  PlanWatch watch;
  Requests requests;
  Admission admission;
  BatchQueue batch;
  WayBacks way_backs;
  CopiedImages copied;
  EndedJobs ended;
  Walltime walltime;
  Rescue rescue;
  NodeLoss node_loss;
  Verbs verbs;
  HandOrders hand;
  ActionPlans actions;
  WaitReasons waits;
  ReturnForecasts returns;
};

// What is done about it.
struct Actors {
  Actors(const Context& c, AgentLink& agents)
      : orders(agents, c.clock),
        jobs(c, orders),
        steps(c, orders),
        strays(c, orders),
        deletions(c, orders),
        copies(c, orders),
        verifications(c, orders),
        desired(c) {}

  Orders orders;
  JobOrders jobs;
  StepNetworks steps;
  Strays strays;
  Deletions deletions;
  CopyOrders copies;
  Verifications verifications;
  DesiredStateBuilder desired;
};

// What is observed.
struct Observers {
  Observers(const Context& c, Deciders& decide, Actors& act)
      : tasks(c, decide.recovery),
        faults(c),
        job(c, tasks, decide.recovery, faults),
        copy(c, decide.recovery),
        silence(c, act.verifications),
        stragglers(c.state, c.cluster),
        expiries(c),
        missing(c, decide.recovery),
        reports(c, silence, faults, copy, tasks, decide.recovery, act.deletions, act.copies,
                act.verifications, act.strays, act.orders, act.steps, stragglers, missing),
        queue(c, tasks, decide.admission, decide.planning, decide.requests, decide.watch) {}

  ManagedTasks tasks;
  NodeFaults faults;
  JobObserver job;
  CopyRecovery copy;
  Silence silence;
  Stragglers stragglers;
  Expiries expiries;
  MissingImages missing;
  AgentReports reports;
  ManagedQueue queue;
};

class Engine::Impl {
 public:
  Impl(Policy policy, Journal& journal, Platform& platform, AgentLink& agents, const Clock& clock)
      : clock_(clock),
        platform_(platform),
        state_(std::move(policy), journal, platform, clock, limited_log_),
        decide_(state_.context),
        act_(state_.context, agents),
        observe_(state_.context, decide_, act_),
        events_(state_.recorder.events()) {}

  absl::Status Start() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetPolicy(Policy policy) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tick() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Looks at what agents have said.
  void TakeMessages() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // After every decision: what follows from it, then the journal, then the orders.
  absl::Status Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes the plans again that do not hold any more. Takes the lock itself, and not while it plans.
  void ReplanRequests() ABSL_LOCKS_EXCLUDED(mutex_);

  // The same for a job that is to be submitted.
  // `kept`: gets all jobs that the first plan leaves alone; null: only those are wanted that are recorded.
  absl::StatusOr<TentativePlan> MakeTentativePlan(const JobSpec& spec, std::vector<PlanKeep>* kept = nullptr)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // What the plan of that number of the request would have been without each of its jobs.
  std::vector<PlanWithout> PlansWithout(JobId request, size_t number) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<ActionPlan> PlanAction(const Caller& caller, const Action& action)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<const Backs> Returns() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<JobSpec> WithDeadline(JobSpec spec) ABSL_LOCKS_EXCLUDED(mutex_);
  // What the caller may ask of the job, found and counted; then what follows from the decision.
  using JobDecision = absl::FunctionRef<absl::Status(Deciders& decide, const JobRecord& job)>;
  absl::Status OnJob(const Caller& caller, JobId id, JobDecision decide) ABSL_LOCKS_EXCLUDED(mutex_);
  // Unless what it was planned with has changed since: see ActionBasis.
  struct IfUnchanged {
    int64_t seq = 0;
    std::vector<NodeId> nodes;
    bool any_node = false;
  };
  absl::Status OnJob(const Caller& caller, JobId id, IfUnchanged since, JobDecision decide)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // What the caller asks for will be journalled: kResourceExhausted if the caller is over the limits.
  absl::Status Spend(const Caller& caller, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

 private:
  friend class Engine;

  absl::Status Flush() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendOut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FailAsTooLong(const NodeId& node, const v1::ToAgent& command) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Schedule() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BuildDesired() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool StepIsDue(Time since, Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LookAtEverything() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(JobId job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  // These have locks of their own.
  LimitedLog limited_log_;
  Inbox inbox_;

  mutable Mutex mutex_;
  Mutex dry_running_;  // one at a time, for each takes a whole core; taken before mutex_
  // Likewise. A comparison makes many plans, and no submission waits for it; never taken with dry_running_.
  Mutex comparing_;
  // Of the newest forecast; no other is taken with it.
  Mutex returns_mutex_;
  CondVar returned_;
  bool forecasting_ ABSL_GUARDED_BY(returns_mutex_) = false;  // one at a time
  std::shared_ptr<const Backs> returns_ ABSL_GUARDED_BY(returns_mutex_);
  Time returns_made_ ABSL_GUARDED_BY(returns_mutex_), returns_until_ ABSL_GUARDED_BY(returns_mutex_);

  Platform& platform_ ABSL_GUARDED_BY(mutex_);
  EngineState state_ ABSL_GUARDED_BY(mutex_);
  Deciders decide_ ABSL_GUARDED_BY(mutex_);
  Actors act_ ABSL_GUARDED_BY(mutex_);
  Observers observe_ ABSL_GUARDED_BY(mutex_);
  const EventLog& events_;  // the state's, with a lock of its own

  RateLimits rate_limits_ ABSL_GUARDED_BY(mutex_);
  int policy_failures_ ABSL_GUARDED_BY(mutex_) = 0;
  Throttle throttle_ ABSL_GUARDED_BY(mutex_);  // of Schedule()
  Time last_full_look_ ABSL_GUARDED_BY(mutex_);
  DesiredState desired_ ABSL_GUARDED_BY(mutex_);  // as of the last Schedule()
  bool desired_is_told_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace siding
