// Whether a job is taken at all: who may ask, for how much, and what is done if its deadline cannot be met.
//
// Used under the engine's lock.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "controller/engine/decide/planning.h"
#include "controller/engine/decide/requests.h"
#include "controller/engine/decide/tentative_plan.h"
#include "controller/engine/engine.h"
#include "controller/engine/state/context.h"

namespace siding {

class Admission {
 public:
  // A deadline job of which a user was told that it can be kept, before the cluster manager had it.
  struct Promised {
    uint32_t uid = 0;
    Time start_by;
    Time made;
  };

  Admission(const Context& c, const Planning& planning, Requests& requests)
      : state_(c.state),
        policy_(c.policy),
        clock_(c.clock),
        platform_(c.platform),
        startup_(c.startup),
        cluster_(c.cluster),
        manager_(c.manager),
        recorder_(c.recorder),
        planning_(planning),
        requests_(requests) {}

  // The answer, if it needs no plan: why the job is refused, or what was answered before. None: neither.
  absl::StatusOr<std::optional<Engine::Submitted>> AnswerAtOnce(const Caller& caller, const JobSpec& spec,
                                                                const std::string& request_key) const;
  // `tentative`: plans that were made a moment ago. `earliest`: its deadline was found for it; if it is
  // refused all the same, nothing is left of it.
  absl::StatusOr<Engine::Submitted> Submit(const Caller& caller, JobSpec spec, const std::string& request_key,
                                           std::optional<TentativePlan> tentative, bool earliest);
  // What the planner needs for a plan that is not carried out.
  absl::StatusOr<SharedTask> DryRun(const JobSpec& spec) const;
  // The earliest deadline of a job that was planned with the deadline of `probe`. Where the policy refuses no
  // late job, and no time is known, it is the deadline of `probe`, which will be missed.
  absl::StatusOr<Time> EarliestFor(const JobSpec& probe, const Plan& plan) const;
  // kFailedPrecondition: on this site a cluster manager decides who makes way.
  absl::Status TakesDeadlines() const;
  // kUnavailable: what the cluster manager has in its queue is not known at the moment.
  absl::Status KnowsTheQueue() const;
  // Remembers what its user is told, for when the cluster manager has the job.
  absl::StatusOr<Time> Promise(const JobSpec& spec, Plan plan);
  // True: it was promised, so it is served as soon as possible. For other jobs the policy says what is done
  // if they are late.
  bool TakePromise(const JobSpec& spec);
  absl::Status CheckRule(const JobSpec& spec) const;
  // The deadline cannot be met. Makes of the refusal what the policy wants instead; false: it is refused.
  bool Postpone(const JobSpec& spec, Plan& plan) const;
  // Node-hours that the user's on-demand jobs had in the last day, and what those that wait or run will have
  // had by their end, as far as they say.
  double NodeHoursOf(uint32_t uid) const;
  // For how long it says that it holds its nodes, or what the policy expects.
  Duration HoldOf(const JobSpec& spec) const;

 private:
  absl::Status CheckMethods(const JobSpec& spec) const;
  absl::Status CheckGraces(const JobSpec& spec) const;
  absl::Status CheckEverFits(const JobSpec& spec) const;
  absl::Status CheckConnections(const JobSpec& spec) const;
  absl::Status CheckCount(const Caller& caller) const;
  // None that a task has which the journal does not know, as after a new one was begun: the job's own would
  // be taken for it.
  JobId NextNumber() const;
  // As it was answered; nullptr: it has not been.
  const JobRecord* AnsweredBefore(uint32_t uid, const std::string& request_key) const;
  absl::Status AgentsAreBack(const Plan& refused) const;
  bool MayHaveUnknownNodes() const;

  const ClusterState& state_;
  const Policy& policy_;
  const Clock& clock_;
  const Platform& platform_;
  const StartUp& startup_;
  const ClusterView& cluster_;
  const ManagerView& manager_;
  Recorder& recorder_;
  const Planning& planning_;
  Requests& requests_;
  std::deque<Promised> promises_;  // to jobs that a cluster manager does not have yet
};

}  // namespace siding
