// What users and operators ask, and why it may be refused.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/engine/impl.h"
#include "controller/wire/spec_limits.h"
#include "controller/wire/wire.h"

namespace siding {
namespace {

// For one verification.
constexpr size_t kMostWaiting = 100;

absl::Status NotInState(const JobRecord& job, const std::string& what) {
  return absl::FailedPreconditionError(
      absl::StrCat("job ", job.id.value(), " is ", ToString(job.state), ": ", what));
}

}  // namespace

bool CanThawIn(const Resources& room, const JobRecord& job) {
  return room.slots >= job.spec.per_node.slots && room.gpus >= job.spec.per_node.gpus;
}

absl::StatusOr<JobRecord*> Engine::Impl::Find(const Caller& caller, JobId id) {
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

absl::StatusOr<JobRecord*> Engine::Impl::FindOwner(const Caller& caller, const CheckpointId& id) {
  auto it = state_.checkpoints.find(id);
  const auto none = absl::NotFoundError(absl::StrCat("there is no checkpoint ", id.value()));
  if (it == state_.checkpoints.end()) return none;
  auto job = Find(caller, it->second.job);
  return absl::IsNotFound(job.status()) ? none : std::move(job);
}

// A cluster manager gives the slots of a suspended job to others, and takes them back without asking for
// room: with it only its operators suspend and resume.
absl::Status Engine::Impl::MayFreeze(const Caller& caller, const JobRecord& job) const {
  if (caller.is_operator || !IsHosted(job) || platform_.manager().empty()) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("only operators suspend and resume jobs of ", platform_.manager()));
}

absl::Status Engine::Impl::Suspend(JobRecord& job) {
  if (job.state != JobState::kRunning) return NotInState(job, "only a running job can be suspended");
  JobMoved move;
  move.event = JobEvent::kOrderSuspend;
  move.notice = NoticeOf(job);
  move.reason = "asked for";
  Move(job, std::move(move));
  return absl::OkStatus();
}

// It waits only because it could not be restored a moment ago.
absl::Status Engine::Impl::TryAgain(JobRecord& job) {
  if (IsHosted(job))
    return NotInState(job, absl::StrCat("it is ", job.spec.cluster_manager, "'s, which starts it again"));
  if (NeedsAWord(job)) {
    return NotInState(job, absl::StrCat("nothing is left that it could go on from; sidingctl restart ",
                                        job.id.value(), " starts it from the beginning"));
  }
  if (not_before_.erase(job.id) + retries_.erase(job.id) == 0)
    return NotInState(job, "it waits for nodes, and goes on by itself when there is room");
  Record(job.id, Noted{"to be tried again at once: asked for"});
  return absl::OkStatus();
}

absl::Status Engine::Impl::Restart(JobRecord& job, const std::string& by) {
  if (IsHosted(job))
    return NotInState(job, absl::StrCat("it is ", job.spec.cluster_manager, "'s, which can requeue it"));
  if (job.state == JobState::kPending) return NotInState(job, "it starts from the beginning by itself");
  if (job.state != JobState::kParked)
    return NotInState(job, "only a parked job can be started from the beginning; vacate parks one that runs");
  not_before_.erase(job.id);
  retries_.erase(job.id);
  StartAnew(job, absl::StrCat("asked for by ", by));
  return absl::OkStatus();
}

absl::Status Engine::Impl::Resume(JobRecord& job) {
  if (job.state == JobState::kParked) return TryAgain(job);
  if (job.state != JobState::kSuspended) return NotInState(job, "only a suspended job can be resumed");
  if (RequestStillWants(job.displaced_by)) {
    return NotInState(job, absl::StrCat("it made way for request ", job.displaced_by.value(),
                                        ", which still uses its nodes"));
  }
  if (!HasRoomToGoOn(job)) return NotInState(job, "others use its nodes, or one of them is away");
  JobMoved move;
  move.event = JobEvent::kOrderResume;
  move.reason = "asked for";
  Move(job, std::move(move));
  return absl::OkStatus();
}

// What it gave up when it was frozen may be a request's now, though it did not make way for one.
bool Engine::Impl::HasRoomToGoOn(const JobRecord& job) const {
  if (IsHosted(job)) return true;  // its cluster manager makes room
  const std::map<NodeId, Resources> room = RoomBesideOthers(job);
  const std::vector<int> ranks = LiveRanks(job);
  return std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
    const auto node = room.find(job.nodes[rank]);
    return node != room.end() && CanThawIn(node->second, job);
  });
}

// Once for each of their ranks.
std::vector<const JobRecord*> Engine::Impl::RunningBeside(const JobRecord& job, const NodeId& node) const {
  std::vector<const JobRecord*> others;
  for (const auto& [id, rank] : state_.index.On(node)) {
    const JobRecord& other = *state_.unfinished.at(id);
    if (id != job.id && !other.in_ram && !other.exited.contains(rank)) others.push_back(&other);
  }
  return others;
}

// On those of its nodes that are there: what those have not got who run. Cordoned ones, too: it is there
// already.
std::map<NodeId, Resources> Engine::Impl::RoomBesideOthers(const JobRecord& job) const {
  std::map<NodeId, Resources> room;
  for (int rank : LiveRanks(job)) {
    const NodeId& node = job.nodes[rank];
    if (!IsConnected(node)) continue;
    // One that has shrunk meanwhile has room for what is there already.
    const Resources capacity = CapacityOf(node, state_.observed_nodes.at(node));
    room[node] = {std::max(capacity.slots, job.spec.per_node.slots), capacity.memory,
                  std::max(capacity.gpus, job.spec.per_node.gpus)};
  }
  for (auto& [node, free] : room) {
    for (const JobRecord* other : RunningBeside(job, node)) free -= other->spec.per_node;
    free -= HeldByStrays(node);
  }
  TakeLeftTasks(room);
  return room;
}

absl::Status Engine::Impl::MayBeSavedTo(const JobRecord& job, Tier tier) const {
  const std::string why = tier == Tier::kLocal ? WhyNotLocal(job) : "";
  return why.empty() ? absl::OkStatus() : NotInState(job, why);
}

absl::StatusOr<CheckpointId> Engine::Impl::OrderCheckpoint(JobRecord& job, Tier tier) {
  if (job.state != JobState::kRunning) return NotInState(job, "only a running job can be checkpointed");
  SIDING_RETURN_IF_ERROR(MayBeSavedTo(job, tier));
  JobMoved move = OrderDump(job, tier);
  move.keep_running = true;
  move.reason = "asked for";
  const CheckpointId id = move.checkpoint;
  Move(job, std::move(move));
  return id;
}

absl::Status Engine::Impl::Vacate(JobRecord& job, Tier tier) {
  if (job.state != JobState::kRunning && job.state != JobState::kSuspended) {
    return NotInState(job, "only a running or suspended job can leave its nodes");
  }
  SIDING_RETURN_IF_ERROR(MayBeSavedTo(job, tier));
  if (const ManagedJob* queued = QueuedAs(job.id); queued != nullptr && queued->suspended)
    return NotInState(job, absl::StrCat("it was suspended in ", job.spec.cluster_manager));
  if (IsHosted(job) && job.state == JobState::kSuspended) {
    return NotInState(job, absl::StrCat("resume it first: ", job.spec.cluster_manager,
                                        " would hold a job that left while it was suspended"));
  }
  JobMoved move = OrderLeave(job, tier);
  move.reason = "asked for";
  Move(job, std::move(move));
  return absl::OkStatus();
}

absl::Status Engine::Impl::Migrate(JobRecord& job, std::vector<NodeId> nodes) {
  if (job.state != JobState::kRunning && job.state != JobState::kSuspended) {
    return NotInState(job, "only a running or suspended job can be migrated");
  }
  const size_t need = job.spec.nodes;
  if (nodes.empty()) {
    for (const auto& [id, free] : Room({})) {
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
    if (!Usable(node)) {
      return absl::FailedPreconditionError(
          absl::StrCat("node ", node.value(), " is down, silent or cordoned"));
    }
    if (!CapacityOf(node, observed->second).Covers(job.spec.per_node)) {
      return absl::FailedPreconditionError(
          absl::StrCat("node ", node.value(), " is too small for job ", job.id.value()));
    }
  }
  JobMoved move = OrderLeave(job, Tier::kShared);
  move.target = std::move(nodes);
  move.reason = "migration asked for";
  Move(job, std::move(move));
  return absl::OkStatus();
}

absl::Status Engine::Impl::Kill(JobRecord& job, const std::string& by) {
  if (IsTerminal(job.state)) return NotInState(job, "it has ended");
  if (IsHosted(job))
    return NotInState(job, absl::StrCat("it is ", job.spec.cluster_manager, "'s, which can cancel it"));
  JobMoved move;
  move.reason = absl::StrCat("asked for by ", by);
  move.for_good = true;
  if (!HoldsNodes(job.state)) {
    move.event = JobEvent::kCancelled;
    move.exit_code = 128 + 15;
  } else if (job.state == JobState::kKilling && job.current.for_good) {
    return absl::OkStatus();
  } else if (job.state == JobState::kKilling) {
    return NotInState(job, "it is being ended already, and will be queued again; kill it then");
  } else {
    move.event = JobEvent::kOrderKill;
  }
  Move(job, std::move(move));
  return absl::OkStatus();
}

absl::Status Engine::Impl::Cordon(const NodeId& node, bool cordoned) {
  if (!IsKnown(node)) return absl::NotFoundError(absl::StrCat("there is no node ", node.value()));
  if (state_.nodes[node].cordoned != cordoned) Record(JobId(), NodeCordoned{node, cordoned});
  return absl::OkStatus();
}

absl::Status Engine::Impl::Verify(const CheckpointId& id, VerifyCallback done) {
  const CheckpointRecord& checkpoint = state_.checkpoints[id];
  if (checkpoint.state != "good" && checkpoint.state != "damaged") {
    return absl::FailedPreconditionError(absl::StrCat(
        "checkpoint ", id.value(), " is ", checkpoint.state.empty() ? "still being made" : checkpoint.state));
  }
  SIDING_ASSIGN_OR_RETURN(const bool waits, WaitWithOthers(id, done));
  if (waits) return absl::OkStatus();
  SIDING_ASSIGN_OR_RETURN(const auto nodes, WhoHas(checkpoint));
  auto verification = std::make_shared<Verification>();
  verification->checkpoint = id;
  verification->outstanding = nodes.size();
  verification->waiting.push_back(std::move(done));
  for (const auto& [rank, node] : nodes) {
    v1::ToAgent command;
    command.set_op(FreshOp());
    command.mutable_verify()->set_checkpoint(id.value());
    command.mutable_verify()->set_tier(ToProto(checkpoint.tier));
    command.mutable_verify()->set_rank(checkpoint.first_rank + rank);
    verifications_[command.op()] = {verification, node, rank};
    Command(node, std::move(command));
  }
  return absl::OkStatus();
}

// The node to ask for each rank's image.
absl::StatusOr<std::map<int, NodeId>> Engine::Impl::WhoHas(const CheckpointRecord& checkpoint) const {
  std::map<int, NodeId> nodes;
  for (int rank = 0; rank < static_cast<int>(checkpoint.nodes.size()); ++rank) {
    if (checkpoint.exited.contains(rank)) continue;
    const NodeId node = NodeWithImage(checkpoint, rank);
    if (!IsHeard(node)) {
      return absl::UnavailableError(absl::StrCat("rank ", rank, " of checkpoint ", checkpoint.id.value(),
                                                 " lies on node ", node.value(), ", which is ",
                                                 IsConnected(node) ? "silent" : "down"));
    }
    nodes[rank] = node;
  }
  if (nodes.empty())
    return absl::FailedPreconditionError(absl::StrCat("checkpoint ", checkpoint.id.value(), " has no image"));
  return nodes;
}

// Whoever asks about images that are being read already gets the same answer: nodes read each once, however
// often somebody asks and gives up.
absl::StatusOr<bool> Engine::Impl::WaitWithOthers(const CheckpointId& id, VerifyCallback& done) {
  const auto running = std::find_if(verifications_.begin(), verifications_.end(), [&](const auto& asked) {
    return asked.second.verification->checkpoint == id;
  });
  if (running == verifications_.end()) return false;
  std::vector<VerifyCallback>& waiting = running->second.verification->waiting;
  if (waiting.size() >= kMostWaiting) {
    return absl::ResourceExhaustedError(absl::StrCat("checkpoint ", id.value(), " is being verified, and ",
                                                     kMostWaiting, " calls wait for that; ask again later"));
  }
  waiting.push_back(std::move(done));
  return true;
}

absl::Status Engine::Impl::DeleteCheckpoint(const CheckpointId& id) {
  const CheckpointRecord& checkpoint = state_.checkpoints[id];
  const JobRecord& job = state_.jobs.at(checkpoint.job);
  if (checkpoint.state.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("checkpoint ", id.value(), " is still being made"));
  }
  const bool in_use = job.state == JobState::kRestoring && job.current.checkpoint == id;
  if (in_use) {
    return absl::FailedPreconditionError(absl::StrCat("job ", job.id.value(), " is ", ToString(job.state),
                                                      " and goes on from checkpoint ", id.value()));
  }
  // Retention leaves it, too: see ExpireCheckpoints().
  if (!IsTerminal(job.state) && UsableImages(state_, job) == std::vector{id}) {
    return absl::FailedPreconditionError(absl::StrCat("checkpoint ", id.value(),
                                                      " is the last good one of job ", job.id.value(),
                                                      ", which is ", ToString(job.state)));
  }
  if (checkpoint.state == "good" || checkpoint.state == "damaged") {
    Record(job.id, CheckpointChanged{id, "deleted", "asked for"});
    retries_.erase(job.id);  // it may go on from the one before
  }
  return absl::OkStatus();
}

}  // namespace siding
