#include "controller/engine/decide/verbs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"
#include "controller/wire/spec_limits.h"

namespace siding {
namespace {

absl::Status NotInState(const JobRecord& job, const std::string& what) {
  return absl::FailedPreconditionError(
      absl::StrCat("job ", job.id.value(), " is ", ToString(job.state), ": ", what));
}

// Of a cluster manager's job; `slurm` is what its user says there, to Slurm.
absl::Status ItsManagerDoes(const JobRecord& job, const std::string& slurm, const std::string& kubernetes) {
  const std::string& manager = job.spec.cluster_manager;
  return NotInState(job, absl::StrCat("it is ", manager, "'s: ",
                                      manager == kKubernetes ? kubernetes : absl::StrCat("use ", slurm)));
}

std::string WalltimeText(Duration walltime) {
  return walltime == Duration(0) ? "none" : FormatDuration(walltime);
}

}  // namespace

bool Verbs::MaySee(const Caller& caller, const JobRecord& job) const {
  return !policy_.private_jobs || MayAct(caller, job);
}

absl::StatusOr<const JobRecord*> Verbs::Find(const Caller& caller, JobId id) {
  auto it = state_.jobs.find(id);
  if (it == state_.jobs.end()) return absl::NotFoundError(WhyUnknown(state_, id));
  if (!MayAct(caller, it->second)) {
    limited_log_.Warn(
        absl::StrCat("actions of user ", caller.user),
        absl::StrCat("user ", caller.user, " (uid ", caller.uid, ") was refused an action on job ",
                     id.value(), " of ", it->second.spec.user));
    if (!MaySee(caller, it->second)) return absl::NotFoundError(WhyUnknown(state_, id));
    return absl::PermissionDeniedError(
        absl::StrCat("job ", id.value(), " belongs to ", it->second.spec.user, ", not to ", caller.user));
  }
  return &it->second;
}

absl::StatusOr<const JobRecord*> Verbs::FindOwner(const Caller& caller, const CheckpointId& id) {
  auto it = state_.checkpoints.find(id);
  const auto none = absl::NotFoundError(absl::StrCat("there is no checkpoint ", id.value()));
  if (it == state_.checkpoints.end()) return none;
  auto job = Find(caller, it->second.job);
  return absl::IsNotFound(job.status()) ? none : std::move(job);
}

absl::Status Verbs::MayFreeze(const Caller& caller, const JobRecord& job) const {
  if (caller.is_operator || OwnershipOf(job.spec).siding_makes_room || platform_.manager().empty())
    return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("only operators suspend and resume jobs of ", platform_.manager()));
}

absl::Status Verbs::Resume(const Caller& caller, const JobRecord& job) {
  if (job.held) return NotInState(job, absl::StrCat("it ", WhoHolds(job), "; release it first"));
  if (job.state == JobState::kParked) return TryAgain(caller, job);
  if (job.state != JobState::kSuspended) return NotInState(job, "only a suspended job can be resumed");
  if (RequestStillWants(state_, job.displaced_by)) {
    return NotInState(job, absl::StrCat("it made way for request ", job.displaced_by.value(),
                                        ", which still uses its nodes"));
  }
  if (!accounts_.HasRoomToContinue(job))
    return NotInState(job, "others use its nodes, or one of them is away");
  JobMoved move;
  move.event = JobEvent::kOrderResume;
  move.by = caller.user;
  move.reason = AskedForBy(caller.user);
  recorder_.Move(job, std::move(move));
  return absl::OkStatus();
}

absl::StatusOr<JobMoved> Verbs::Begin(const JobRecord& job, const HandOrder& order) const {
  const bool runs = job.state == JobState::kRunning || IsSavedRunning(job);
  const bool is_there = runs || job.state == JobState::kSuspended;
  JobMoved move;
  switch (order.verb) {
    case HandVerb::kSuspend:
      if (!runs) return NotInState(job, "only a running job can be suspended");
      move.event = JobEvent::kOrderSuspend;
      move.notice = NoticeOf(job);
      break;
    case HandVerb::kCheckpoint:
      if (!runs) return NotInState(job, "only a running job can be checkpointed");
      // One behind the other, they would keep the job from everybody else.
      if (IsSavedByHand(job))
        return NotInState(job, "a checkpoint that was asked for is being made; ask again when it is made");
      SIDING_RETURN_IF_ERROR(MayBeSavedTo(job, order.tier));
      move = checkpoints_.OrderImage(job, order.tier);
      break;
    case HandVerb::kVacate:
      if (!is_there) return NotInState(job, "only a running or suspended job can leave its nodes");
      SIDING_RETURN_IF_ERROR(MayBeSavedTo(job, order.tier));
      SIDING_RETURN_IF_ERROR(MayLeaveAsItIs(job));
      move = checkpoints_.OrderLeave(job, order.tier);
      break;
    case HandVerb::kMigrate: {
      if (!is_there) return NotInState(job, "only a running or suspended job can be migrated");
      SIDING_RETURN_IF_ERROR(MayLeaveAsItIs(job));
      SIDING_ASSIGN_OR_RETURN(std::vector<NodeId> target, TargetFor(job, order.target));
      move = checkpoints_.OrderLeave(job, Tier::kShared);
      move.target = std::move(target);
      break;
    }
  }
  return move;
}

// A manager holds what left while it was suspended.
absl::Status Verbs::MayLeaveAsItIs(const JobRecord& job) const {
  if (const ManagedJob* queued = manager_.QueuedAs(job.id); queued != nullptr && queued->suspended)
    return NotInState(job, absl::StrCat("it was suspended in ", job.spec.cluster_manager));
  const bool stays_suspended = !OwnershipOf(job.spec).siding_makes_room && !platform_.continues_jobs();
  if (stays_suspended && job.state == JobState::kSuspended) {
    return NotInState(job, absl::StrCat("resume it first: ", job.spec.cluster_manager,
                                        " would hold a job that left while it was suspended"));
  }
  return absl::OkStatus();
}

// Where the job is to go on: on the nodes that were named or, if none were, on others with room.
absl::StatusOr<std::vector<NodeId>> Verbs::TargetFor(const JobRecord& job, std::vector<NodeId> nodes) const {
  const size_t need = job.spec.nodes;
  if (nodes.empty()) {
    for (const auto& [id, free] : accounts_.Room({})) {
      const bool own = std::find(job.nodes.begin(), job.nodes.end(), id) != job.nodes.end();
      if (!own && nodes.size() < need && free.Covers(job.spec.per_node)) nodes.push_back(id);
    }
    if (nodes.size() < need) {
      return absl::FailedPreconditionError(absl::StrCat("job ", job.id.value(), " needs ", need,
                                                        " other nodes with room for it; there are ",
                                                        nodes.size()));
    }
  }
  if (nodes.size() != need) {
    return absl::InvalidArgumentError(
        absl::StrCat("nodes: job ", job.id.value(), " runs on ", need, ", ", nodes.size(), " were named"));
  }
  const std::set<NodeId> named(nodes.begin(), nodes.end());
  if (named.size() < nodes.size())
    return BadField("nodes", "different ones, as one task of a job runs on a node");
  if (named == std::set<NodeId>(job.nodes.begin(), job.nodes.end()))
    return BadField("nodes", absl::StrCat("others than those where job ", job.id.value(), " is already"));
  for (const NodeId& node : nodes) {
    auto observed = state_.observed_nodes.find(node);
    if (observed == state_.observed_nodes.end()) {
      return absl::NotFoundError(absl::StrCat("there is no node ", node.value()));
    }
    if (!cluster_.Usable(node)) {
      return absl::FailedPreconditionError(
          absl::StrCat("node ", node.value(), " is down, silent, cordoned or faulty"));
    }
    if (!cluster_.CapacityOf(node, observed->second).Covers(job.spec.per_node)) {
      return absl::FailedPreconditionError(
          absl::StrCat("node ", node.value(), " is too small for job ", job.id.value()));
    }
  }
  return nodes;
}

absl::Status Verbs::Restart(const Caller& caller, const JobRecord& job, bool running) {
  if (!OwnershipOf(job.spec).siding_ends || (running && !OwnershipOf(job.spec).siding_starts)) {
    return ItsManagerDoes(job, absl::StrCat("scontrol requeue ", job.id.value()),
                          "delete its pod, and its owner makes another one");
  }
  if (job.state == JobState::kPending) return NotInState(job, "it starts from the beginning by itself");
  if (running && job.state != JobState::kParked) return EndToRestart(caller, job);
  if (job.state != JobState::kParked) {
    return NotInState(job,
                      "only a parked job can be started from the beginning; --running is for one that runs "
                      "or is suspended");
  }
  recovery_.TryAtOnce(job.id);
  recovery_.StartOver(job, AskedForBy(caller.user), caller.user);
  return absl::OkStatus();
}

absl::Status Verbs::EndToRestart(const Caller& caller, const JobRecord& job) {
  if (job.state == JobState::kKilling && job.current.from_beginning) return absl::OkStatus();
  if (job.state != JobState::kRunning && job.state != JobState::kSuspended)
    return NotInState(job, "only a running, suspended or parked job can be started from the beginning");
  if (!MayBeRestarted(job)) {
    return NotInState(job,
                      "it does not allow that (kill in --preemptible, or --on-node-failure=requeue); vacate "
                      "parks it with its work saved, and restart then starts it from the beginning");
  }
  // What its user has left of a day's node-hours, and what others were promised, was reckoned with it once.
  if (IsRequest(job) && !caller.is_operator) {
    return absl::PermissionDeniedError(
        absl::StrCat("job ", job.id.value(),
                     " has a deadline, and would have its whole walltime again: only operators start it from "
                     "the beginning while it runs"));
  }
  JobMoved move;
  move.event = JobEvent::kOrderKill;
  move.from_beginning = true;
  move.by = caller.user;
  move.reason = AskedForBy(caller.user);
  recorder_.Move(job, std::move(move));
  return absl::OkStatus();
}

absl::Status Verbs::Hold(const Caller& caller, const JobRecord& job) {
  if (IsTerminal(job.state)) return NotInState(job, "it has ended");
  if (!OwnershipOf(job.spec).siding_starts) {
    return ItsManagerDoes(job, absl::StrCat("scontrol hold ", job.id.value()), "set spec.suspend of its Job");
  }
  if (!MayBeHeld(job)) {
    return NotInState(job,
                      "only a job that waits is held; suspend freezes one that runs, vacate takes it off its "
                      "nodes");
  }
  // Others make way for it, and nobody would be served by that.
  if (IsRequest(job))
    return NotInState(job, "it has a deadline, and is not held; kill it, and submit it again");
  const bool by_operator = caller.uid != job.spec.uid;
  const bool is_held_so = job.held && (job.held->by_operator || !by_operator);
  if (!is_held_so) recorder_.Record(job.id, JobHeld{true, by_operator, caller.user});
  return absl::OkStatus();
}

absl::Status Verbs::Release(const Caller& caller, const JobRecord& job) {
  if (!OwnershipOf(job.spec).siding_starts) {
    return ItsManagerDoes(job, absl::StrCat("scontrol release ", job.id.value()),
                          "unset spec.suspend of its Job");
  }
  if (!job.held) return NotInState(job, "it is not held");
  if (job.held->by_operator && !caller.is_operator) {
    return absl::PermissionDeniedError(
        absl::StrCat("job ", job.id.value(), " ", WhoHolds(job), ": only operators release it"));
  }
  recorder_.Record(job.id, JobHeld{false, job.held->by_operator, caller.user});
  return absl::OkStatus();
}

absl::Status Verbs::Update(const Caller& caller, const JobRecord& job, const JobChange& change) {
  if (IsTerminal(job.state)) return NotInState(job, "it has ended");
  if (job.state == JobState::kKilling && job.current.for_good) return NotInState(job, "it is being ended");
  if (!OwnershipOf(job.spec).siding_starts || !OwnershipOf(job.spec).siding_limits) {
    return ItsManagerDoes(job, absl::StrCat("scontrol update JobId=", job.id.value()),
                          "its priority and its time are its pod's");
  }
  JobUpdated update;
  update.by = caller.user;
  if (change.priority && *change.priority != job.spec.priority) {
    SIDING_RETURN_IF_ERROR(MayRaisePriority(caller, job, *change.priority));
    update.priority = change.priority;
  }
  if (change.walltime && *change.walltime != job.spec.walltime) {
    SIDING_RETURN_IF_ERROR(MayChangeWalltime(caller, job, *change.walltime));
    update.walltime = change.walltime;
  }
  if (update.priority || update.walltime) recorder_.Record(job.id, std::move(update));
  return absl::OkStatus();
}

absl::Status Verbs::MayRaisePriority(const Caller& caller, const JobRecord& job, int priority) const {
  if (caller.is_operator || policy_.users_raise_priority || priority < job.spec.priority)
    return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "priority: expected at most ", job.spec.priority, ", what job ", job.id.value(), " has, got ", priority,
      ": only operators raise it (the site's policy: users_raise_priority)"));
}

// What a job with a deadline was promised rests on its time, and so does what its user has left of a day's
// node-hours.
absl::Status Verbs::MayChangeWalltime(const Caller& caller, const JobRecord& job, Duration walltime) const {
  if (job.preemptible_since) return NotInState(job, "its walltime is over, and it runs on as preemptible");
  // Without a walltime it may run on, but is reckoned as the policy expects it.
  const Duration limit = IsRequest(job) ? admission_.HoldOf(job.spec) : job.spec.walltime;
  const bool is_longer = limit > Duration(0) && (walltime == Duration(0) || walltime > limit);
  const bool may_be_longer = job.state == JobState::kPending && !IsRequest(job);
  if (!is_longer || may_be_longer || caller.is_operator) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("walltime: expected at most ", FormatDuration(limit), ", what job ", job.id.value(),
                   " has, got ", WalltimeText(walltime), ": only operators give more to a job that ",
                   IsRequest(job) ? "has a deadline" : "has started"));
}

absl::StatusOr<std::optional<JobMoved>> Verbs::End(const JobRecord& job, const std::string& by) const {
  if (IsTerminal(job.state)) return NotInState(job, "it has ended");
  if (!OwnershipOf(job.spec).siding_ends)
    return NotInState(job, absl::StrCat("it is ", job.spec.cluster_manager, "'s, which can cancel it"));
  JobMoved move;
  move.by = by;
  move.reason = AskedForBy(by);
  move.for_good = true;
  if (!HoldsNodes(job.state)) {
    move.event = JobEvent::kCancelled;
  } else if (job.state == JobState::kKilling && job.current.for_good) {
    return std::nullopt;
  } else if (job.state == JobState::kKilling) {
    return NotInState(job, "it is being ended already, and will be queued again; kill it then");
  } else {
    move.event = JobEvent::kOrderKill;
  }
  return move;
}

absl::Status Verbs::Kill(const JobRecord& job, const std::string& by) {
  SIDING_ASSIGN_OR_RETURN(auto move, End(job, by));
  if (move) recorder_.Move(job, *std::move(move));
  return absl::OkStatus();
}

absl::Status Verbs::IsKnown(const NodeId& node) const {
  return cluster_.IsKnown(node) ? absl::OkStatus()
                                : absl::NotFoundError(absl::StrCat("there is no node ", node.value()));
}

absl::Status Verbs::Cordon(const Caller& caller, const NodeId& node, bool cordoned) {
  SIDING_RETURN_IF_ERROR(IsKnown(node));
  const auto record = state_.nodes.find(node);
  const bool is_cordoned = record != state_.nodes.end() && record->second.cordoned;
  if (is_cordoned != cordoned) recorder_.Record(JobId(), NodeCordoned{node, cordoned, caller.user});
  return absl::OkStatus();
}

absl::Status Verbs::DeleteCheckpoint(const Caller& caller, const CheckpointId& id) {
  const CheckpointRecord& checkpoint = state_.checkpoints.at(id);
  const JobRecord& job = state_.jobs.at(checkpoint.job);
  if (checkpoint.state == CheckpointState::kBeingMade) {
    return absl::FailedPreconditionError(absl::StrCat("checkpoint ", id.value(), " is still being made"));
  }
  if (IsRestoringFrom(job, id)) {
    return absl::FailedPreconditionError(absl::StrCat("job ", job.id.value(), " is ", ToString(job.state),
                                                      " and goes on from checkpoint ", id.value()));
  }
  // Retention keeps it as well: see ExpireCheckpoints().
  if (!IsTerminal(job.state) && UsableImages(state_, job) == std::vector{id}) {
    return absl::FailedPreconditionError(absl::StrCat("checkpoint ", id.value(),
                                                      " is the last good one of job ", job.id.value(),
                                                      ", which is ", ToString(job.state)));
  }
  if (IsWhole(checkpoint.state)) {
    recorder_.Record(job.id,
                     CheckpointChanged{id, CheckpointState::kDeleted, AskedForBy(caller.user), caller.user});
    recovery_.ForgetRetries(job.id);  // it may continue from the one before
  }
  return absl::OkStatus();
}

// It waits only because it could not be restored a moment ago.
absl::Status Verbs::TryAgain(const Caller& caller, const JobRecord& job) {
  if (!OwnershipOf(job.spec).siding_ends)
    return NotInState(job, absl::StrCat("it is ", job.spec.cluster_manager, "'s, which starts it again"));
  if (recovery_.NeedsDecision(job)) {
    if (recovery_.TakeRefusedBack(job, caller.user)) return absl::OkStatus();
    return NotInState(job, absl::StrCat("nothing is left that it could go on from; sidingctl restart ",
                                        job.id.value(), " starts it from the beginning"));
  }
  if (!recovery_.TryAtOnce(job.id))
    return NotInState(job, "it waits for nodes, and goes on by itself when there is room");
  recorder_.Record(
      job.id, Noted{absl::StrCat("to be tried again at once: ", AskedForBy(caller.user)), -1, caller.user});
  return absl::OkStatus();
}

absl::Status Verbs::MayBeSavedTo(const JobRecord& job, Tier tier) const {
  const std::string why = tier == Tier::kLocal ? manager_.WhyNotLocal(job) : "";
  return why.empty() ? absl::OkStatus() : NotInState(job, why);
}

}  // namespace siding
