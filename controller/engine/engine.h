// Decide, record, act: the controller's one decision maker.
//
// Every input (a call of the API, a message of an agent, a tick of time) is turned into events; events are
// appended to the journal, applied to the state, and then Act() brings the world towards the state: it sends
// commands to agents for whatever they have not been seen to do yet. Act() is idempotent, so a restart is a
// replay followed by Act().
//
// Thread-safe: one lock around everything but the log of events and dry runs. No call blocks, except on the
// journal's disk.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "controller/engine/state/cluster_state.h"
#include "controller/engine/state/retention.h"
#include "controller/journal/journal.h"
#include "controller/platform/agents.h"
#include "controller/platform/platform.h"
#include "model/action_plan.h"
#include "model/policy.h"
#include "planner/return_forecast.h"

namespace siding {

// Who asks.
struct Caller {
  uint32_t uid = 0;
  std::string user;
  bool is_operator = false;
};

class Engine final : public AgentEvents {
 public:
  // Everything passed in must outlive the engine.
  Engine(Policy policy, Journal& journal, Platform& platform, AgentLink& agents, const Clock& clock);
  ~Engine() override;
  // Replays the journal. Once, before any other call.
  absl::Status Start();

  // ---- Users and operators. Each checks that the caller may act on the job. ----
  struct Submitted {
    JobId id;
    std::optional<Plan> plan;  // on-demand
  };
  // kFailedPrecondition with the earliest feasible time if an on-demand job cannot be served by its start_by,
  // which may be kEarliest (model/plan.h).
  // `request_key`: one that this user has used within the last hour gets the answer that it got then, so that
  // a client which has not heard the answer may ask again; empty: none.
  absl::StatusOr<Submitted> Submit(const Caller& caller, JobSpec spec, const std::string& request_key = "");
  // `compare`: also what would be done without each of the jobs that would make way, at the price of a plan
  // for each. `all_kept`: with all jobs that are left alone, not only those that would be recorded.
  absl::StatusOr<Plan> DryRun(const Caller& caller, const JobSpec& spec, bool compare = false,
                              bool all_kept = false);
  // The same for a plan that was adopted: of the request's, the one of that number from 0 on. Takes a plan
  // for each. Empty: it was late or made with others, or is not known any more, as after a restart.
  std::vector<PlanWithout> PlansWithout(JobId request, size_t number);
  // With the time that kEarliest stands for now; another start_by stays.
  absl::StatusOr<JobSpec> WithDeadline(JobSpec spec) const;
  // For a deadline job that is about to be submitted to a cluster manager: when it is expected to start (0:
  // it would wait its turn), or the error that Submit would give. kUnavailable: that is not known yet, as the
  // manager or agents have not been heard since a restart.
  absl::StatusOr<Time> WouldStart(const Caller& caller, const JobSpec& spec);
  // What an order would do, which its caller may give: the error that it would get.
  absl::StatusOr<ActionPlan> PlanAction(const Caller& caller, const Action& action);
  // `if_unchanged`, here and below: the sequence of a plan. kFailedPrecondition, and nothing is done, if
  // something has happened since on which it rests.
  absl::Status Suspend(const Caller& caller, JobId job, int64_t if_unchanged = 0);
  // A frozen job continues; one that is parked because it could not be restored is tried again at once.
  absl::Status Resume(const Caller& caller, JobId job, int64_t if_unchanged = 0);
  // The job keeps running. Returns the id of the checkpoint that was ordered.
  absl::StatusOr<CheckpointId> Checkpoint(const Caller& caller, JobId job, Tier tier,
                                          int64_t if_unchanged = 0);
  absl::Status Vacate(const Caller& caller, JobId job, Tier tier, int64_t if_unchanged = 0);
  absl::Status Migrate(const Caller& caller, JobId job, std::vector<NodeId> nodes, int64_t if_unchanged = 0);
  // A parked job starts from the beginning, without its checkpoints. `running`: also one that runs or is
  // suspended, which is ended first; kFailedPrecondition if it does not allow that.
  absl::Status Restart(const Caller& caller, JobId job, bool running = false);
  // A job that waits, or is on its way off its nodes, gets none until it is released; by operators, if one
  // of them holds it.
  absl::Status Hold(const Caller& caller, JobId job, int64_t if_unchanged = 0);
  absl::Status Release(const Caller& caller, JobId job, int64_t if_unchanged = 0);
  // All of it or nothing. Users lower the priority only, unless the policy lets them raise it, and give more
  // time only to batch jobs that wait to start.
  absl::Status Update(const Caller& caller, JobId job, const JobChange& change);
  absl::Status Kill(const Caller& caller, JobId job, int64_t if_unchanged = 0);
  absl::Status Cordon(const Caller& caller, const NodeId& node, bool cordoned, int64_t if_unchanged = 0);
  // The node is gone for good: what ran there is given up and continues elsewhere. Undone when its agent
  // dials. kFailedPrecondition if it is there, or may be.
  absl::Status Lose(const Caller& caller, const NodeId& node, int64_t if_unchanged = 0);
  using VerifyCallback = std::function<void(std::map<int, v1::OpResult> by_rank)>;  // called once, any thread
  absl::Status VerifyCheckpoint(const Caller& caller, const CheckpointId& id, VerifyCallback done);
  absl::Status DeleteCheckpoint(const Caller& caller, const CheckpointId& id);

  // ---- The policy. ----
  void SetPolicy(Policy policy);
  // The same, and an event says so, if it changes anything. While the journal cannot be written it is in
  // force without that.
  void ChangePolicy(Policy policy, PolicyChanged change);
  Policy policy() const;
  void PolicyFailed();  // a new one could not be loaded; counted
  int policy_failures() const;
  // Nothing is decided while it cannot.
  bool JournalCanBeWritten() const;
  int64_t quota_refusals() const;  // requests beyond max_requests_per_hour, max_request_mib_per_hour
  bool IsOperator(const std::string& user) const;

  // How long jobs that have ended are remembered.
  void SetRetention(Retention retention);

  // A node whose agent is connected, and has sent no heartbeat for so long, is silent: nothing new is planned
  // there. 0, as before the first call: no node is.
  void SetSilence(Duration after);
  // When the controller's own certificate expires; none: it has none. An event tells when that is near, as of
  // the agents'.
  void SetCertificateEnd(std::optional<Time> ends);
  std::optional<Time> certificate_end() const;

  // ---- Agents. ----
  // kFailedPrecondition if the node has an agent connected already. What does not pass
  // controller/wire/check.h is refused, and as a message ignored. A message may be looked at after
  // OnMessage() has returned, but before anything that comes later from its node.
  absl::Status OnConnected(const NodeId& node, const v1::Hello& hello) override;
  void OnMessage(const NodeId& node, const v1::FromAgent& message) override;
  void OnDisconnected(const NodeId& node) override;

  // ---- The cluster manager's queue, if there is one. ----
  void OnManager(ManagerChanges changes);

  // ---- Time. Call about ten times a second. ----
  void Tick();

  // ---- Reading. `visit` runs under the lock: copy out what is needed and return. ----
  void Read(const std::function<void(const ClusterState&)>& visit) const;
  // By which deadlines are kept.
  Time Now() const;
  // That has the queue, "slurm"; empty: siding has it.
  std::string ClusterManager() const;
  bool MayAct(const Caller& caller, const JobRecord& job) const;
  // The job's existence, owner and state. For `visit`.
  bool MaySee(const Caller& caller, const JobRecord& job) const;
  // Of every job. Not for `visit`.
  bool MaySeeAll(const Caller& caller) const;
  // What it waits for, in words; empty: nothing. For `visit`.
  std::string WhyWaits(const JobRecord& job) const;
  // When those that wait, or made way, will have nodes again. Takes the engine's lock only to copy what it
  // rests on. May be old by twenty times of what it takes to make, so by seconds in a large cluster. Not for
  // `visit`.
  using Backs = std::map<JobId, Back>;
  std::shared_ptr<const Backs> Returns() const;
  // For tests: caches have what would be computed now.
  bool IsConsistent() const;
  // For tests: messages of agents that wait for the lock. Takes none.
  size_t MessagesWaiting() const;
  // Events after `seq`, at most `limit`; waits up to `wait` for the first one. An error: older ones cannot be
  // read from the journal.
  absl::StatusOr<std::vector<Event>> ReadEvents(int64_t seq, size_t limit, Duration wait) const;
  // The same; what cannot be read is left out.
  std::vector<Event> EventsAfter(int64_t seq, size_t limit, Duration wait) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace siding
