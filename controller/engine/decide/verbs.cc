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

absl::Status Verbs::Suspend(const JobRecord& job) {
  if (job.state != JobState::kRunning) return NotInState(job, "only a running job can be suspended");
  JobMoved move;
  move.event = JobEvent::kOrderSuspend;
  move.notice = NoticeOf(job);
  move.reason = "asked for";
  recorder_.Move(job, std::move(move));
  return absl::OkStatus();
}

absl::Status Verbs::Resume(const JobRecord& job) {
  if (job.state == JobState::kParked) return TryAgain(job);
  if (job.state != JobState::kSuspended) return NotInState(job, "only a suspended job can be resumed");
  if (RequestStillWants(state_, job.displaced_by)) {
    return NotInState(job, absl::StrCat("it made way for request ", job.displaced_by.value(),
                                        ", which still uses its nodes"));
  }
  if (!accounts_.HasRoomToContinue(job))
    return NotInState(job, "others use its nodes, or one of them is away");
  JobMoved move;
  move.event = JobEvent::kOrderResume;
  move.reason = "asked for";
  recorder_.Move(job, std::move(move));
  return absl::OkStatus();
}

absl::StatusOr<CheckpointId> Verbs::Checkpoint(const JobRecord& job, Tier tier) {
  if (job.state != JobState::kRunning) return NotInState(job, "only a running job can be checkpointed");
  SIDING_RETURN_IF_ERROR(MayBeSavedTo(job, tier));
  JobMoved move = checkpoints_.OrderDump(job, tier);
  move.keep_running = true;
  move.reason = "asked for";
  const CheckpointId id = move.checkpoint;
  recorder_.Move(job, std::move(move));
  return id;
}

absl::Status Verbs::Vacate(const JobRecord& job, Tier tier) {
  if (job.state != JobState::kRunning && job.state != JobState::kSuspended) {
    return NotInState(job, "only a running or suspended job can leave its nodes");
  }
  SIDING_RETURN_IF_ERROR(MayBeSavedTo(job, tier));
  if (const ManagedJob* queued = manager_.QueuedAs(job.id); queued != nullptr && queued->suspended)
    return NotInState(job, absl::StrCat("it was suspended in ", job.spec.cluster_manager));
  if (!OwnershipOf(job.spec).siding_makes_room && job.state == JobState::kSuspended) {
    return NotInState(job, absl::StrCat("resume it first: ", job.spec.cluster_manager,
                                        " would hold a job that left while it was suspended"));
  }
  JobMoved move = checkpoints_.OrderLeave(job, tier);
  move.reason = "asked for";
  recorder_.Move(job, std::move(move));
  return absl::OkStatus();
}

absl::Status Verbs::Migrate(const JobRecord& job, std::vector<NodeId> nodes) {
  if (job.state != JobState::kRunning && job.state != JobState::kSuspended) {
    return NotInState(job, "only a running or suspended job can be migrated");
  }
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
  JobMoved move = checkpoints_.OrderLeave(job, Tier::kShared);
  move.target = std::move(nodes);
  move.reason = "migration asked for";
  recorder_.Move(job, std::move(move));
  return absl::OkStatus();
}

absl::Status Verbs::Restart(const JobRecord& job, const std::string& by) {
  if (!OwnershipOf(job.spec).siding_ends)
    return NotInState(job, absl::StrCat("it is ", job.spec.cluster_manager, "'s, which can requeue it"));
  if (job.state == JobState::kPending) return NotInState(job, "it starts from the beginning by itself");
  if (job.state != JobState::kParked)
    return NotInState(job, "only a parked job can be started from the beginning; vacate parks one that runs");
  recovery_.TryAtOnce(job.id);
  recovery_.StartOver(job, absl::StrCat("asked for by ", by));
  return absl::OkStatus();
}

absl::Status Verbs::Kill(const JobRecord& job, const std::string& by) {
  if (IsTerminal(job.state)) return NotInState(job, "it has ended");
  if (!OwnershipOf(job.spec).siding_ends)
    return NotInState(job, absl::StrCat("it is ", job.spec.cluster_manager, "'s, which can cancel it"));
  JobMoved move;
  move.reason = absl::StrCat("asked for by ", by);
  move.for_good = true;
  if (!HoldsNodes(job.state)) {
    move.event = JobEvent::kCancelled;
  } else if (job.state == JobState::kKilling && job.current.for_good) {
    return absl::OkStatus();
  } else if (job.state == JobState::kKilling) {
    return NotInState(job, "it is being ended already, and will be queued again; kill it then");
  } else {
    move.event = JobEvent::kOrderKill;
  }
  recorder_.Move(job, std::move(move));
  return absl::OkStatus();
}

absl::Status Verbs::Cordon(const NodeId& node, bool cordoned) {
  if (!cluster_.IsKnown(node)) return absl::NotFoundError(absl::StrCat("there is no node ", node.value()));
  const auto record = state_.nodes.find(node);
  const bool is_cordoned = record != state_.nodes.end() && record->second.cordoned;
  if (is_cordoned != cordoned) recorder_.Record(JobId(), NodeCordoned{node, cordoned});
  return absl::OkStatus();
}

absl::Status Verbs::DeleteCheckpoint(const CheckpointId& id) {
  const CheckpointRecord& checkpoint = state_.checkpoints.at(id);
  const JobRecord& job = state_.jobs.at(checkpoint.job);
  if (checkpoint.state == CheckpointState::kBeingMade) {
    return absl::FailedPreconditionError(absl::StrCat("checkpoint ", id.value(), " is still being made"));
  }
  const bool in_use = job.state == JobState::kRestoring && job.current.checkpoint == id;
  if (in_use) {
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
    recorder_.Record(job.id, CheckpointChanged{id, CheckpointState::kDeleted, "asked for"});
    recovery_.ForgetRetries(job.id);  // it may continue from the one before
  }
  return absl::OkStatus();
}

// It waits only because it could not be restored a moment ago.
absl::Status Verbs::TryAgain(const JobRecord& job) {
  if (!OwnershipOf(job.spec).siding_ends)
    return NotInState(job, absl::StrCat("it is ", job.spec.cluster_manager, "'s, which starts it again"));
  if (recovery_.NeedsDecision(job)) {
    if (recovery_.TakeRefusedBack(job)) return absl::OkStatus();
    return NotInState(job, absl::StrCat("nothing is left that it could go on from; sidingctl restart ",
                                        job.id.value(), " starts it from the beginning"));
  }
  if (!recovery_.TryAtOnce(job.id))
    return NotInState(job, "it waits for nodes, and goes on by itself when there is room");
  recorder_.Record(job.id, Noted{"to be tried again at once: asked for"});
  return absl::OkStatus();
}

absl::Status Verbs::MayBeSavedTo(const JobRecord& job, Tier tier) const {
  const std::string why = tier == Tier::kLocal ? manager_.WhyNotLocal(job) : "";
  return why.empty() ? absl::OkStatus() : NotInState(job, why);
}

}  // namespace siding
