// Everything that starts without anybody asking at that moment: the queue, periodic checkpoints, and the end
// of old ones.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "controller/engine/impl.h"
#include "controller/wire/wire.h"
#include "model/checkpoint_interval.h"

namespace siding {
namespace {

constexpr double kSecondsPerYear = 365.25 * 86400;

// The first that has to wait; the others wait behind it. One that can go on only on its own nodes holds up
// nobody elsewhere.
JobId HeadOf(const std::vector<Waiting>& waiting, const std::vector<Placement>& placements) {
  std::set<JobId> placed;
  for (const Placement& placement : placements) placed.insert(placement.job);
  const Waiting* head = nullptr;
  for (const Waiting& job : waiting) {
    if (placed.contains(job.id) || !job.only_on.empty() || !job.not_on.empty()) continue;
    if (head == nullptr || GoesBefore(job, *head)) head = &job;
  }
  return head == nullptr ? JobId() : head->id;
}

}  // namespace

bool WaitsForItsNodes(const JobRecord& job) {
  return IsRequest(job) && job.state == JobState::kPending && !job.plans.empty();
}

bool IsQueued(const JobRecord& job) { return WaitsForItsNodes(job) && job.plans.back().queued; }

bool CouldFit(const Waiting& job, const std::map<NodeId, Resources>& capacities) {
  if (!job.only_on.empty()) {
    return std::all_of(job.only_on.begin(), job.only_on.end(), [&](const NodeId& id) {
      const auto node = capacities.find(id);
      return node != capacities.end() && node->second.Covers(job.per_node);
    });
  }
  // Ends at the first that are enough: with a long queue this is asked for thousands of jobs in a row.
  int missing = job.nodes;
  for (auto it = capacities.begin(); missing > 0 && it != capacities.end(); ++it)
    missing -= it->second.Covers(job.per_node) && !job.not_on.contains(it->first);
  return missing <= 0;
}

bool Engine::Impl::MustWait(const JobRecord& job) const {
  auto it = not_before_.find(job.id);
  return (it != not_before_.end() && clock_.Now() < it->second) || NeedsAWord(job) || WaitsForItsRound(job) ||
         HasLeftTasks(job);
}

// Were it started again now, it might run twice.
// That it does not where a node is lost is the operator's word.
bool Engine::Impl::HasLeftTasks(const JobRecord& job) const {
  if (HoldsNodes(job.state)) return false;  // it has been: to keep it frozen would undo nothing
  for (const auto& [node, jobs] : state_.given_up) {
    if (jobs.contains(job.id) && !IsLost(node)) return true;
  }
  for (int rank = 0; rank < static_cast<int>(job.last_nodes.size()); ++rank) {
    const NodeId& node = job.last_nodes[rank];
    if (!IsLeftTask(job, node, TaskOf(job, rank)) || IsLost(node)) continue;
    const ObservedTask* task = TaskOn(node, TaskOf(job, rank));
    if (task == nullptr || !IsGone(task->report.phase())) return true;
  }
  return false;
}

bool Engine::Impl::RequestStillWants(JobId request) const {
  auto it = state_.jobs.find(request);
  return it != state_.jobs.end() && !IsTerminal(it->second.state);
}

// Nodes that are wholly free and stay so, for requests to come. Not those on which alone somebody can go on:
// he would wait for ever.
void Engine::Impl::KeepHeadroom(std::vector<NodeRoom>& room, const std::vector<Waiting>& waiting) const {
  if (policy_.headroom_nodes == 0) return;
  std::set<NodeId> needed;
  for (const Waiting& job : waiting) needed.insert(job.only_on.begin(), job.only_on.end());
  int kept = 0;
  std::erase_if(room, [&](const NodeRoom& node) {
    const bool idle = node.free == Accounts().at(node.id).capacity;
    return idle && !needed.contains(node.id) && kept++ < policy_.headroom_nodes;
  });
}

// One that is to start from the beginning does so with all its ranks, whatever it has been saved to.
bool Engine::Impl::GoesOnFromImage(const JobRecord& job) const {
  return job.state == JobState::kParked && ResumptionOf(state_, job) == Resumption::kCheckpoint;
}

// By rank, where alone it can go on, or is to; empty: anywhere.
std::vector<NodeId> Engine::Impl::TiedTo(const JobRecord& job) const {
  if (GoesOnFromImage(job)) {
    const CheckpointRecord& checkpoint = state_.checkpoints.at(job.checkpoints.back());
    if (checkpoint.tier == Tier::kLocal) return checkpoint.nodes;
  }
  return TargetOf(job);
}

// Ranks that had ended when the image was made need no room, nor that their nodes are there.
std::vector<NodeId> Engine::Impl::WithoutExited(const JobRecord& job, std::vector<NodeId> tied) const {
  const std::map<int, int>& exited = state_.checkpoints.at(job.checkpoints.back()).exited;
  std::vector<NodeId> needed;
  for (int rank = 0; rank < static_cast<int>(tied.size()); ++rank) {
    if (!exited.contains(rank)) needed.push_back(std::move(tied[rank]));
  }
  return needed;
}

// Somebody wants it off these nodes, and not for a request.
std::vector<NodeId> Engine::Impl::VacatedBy(const JobRecord& job) const {
  const bool vacated = job.state == JobState::kParked && job.current.event == JobEvent::kOrderDump &&
                       job.current.request == JobId() && job.displaced_by == JobId();
  return vacated ? job.last_nodes : std::vector<NodeId>();
}

// For which it will hold its nodes at most, from its start or from now; 0: nobody knows. What is parked may
// take long to be restored.
Duration Engine::Impl::TimeLeft(const JobRecord& job) const {
  const bool ends = !IsRequest(job) || policy_.after_walltime == AfterWalltime::kEnd;
  const bool parked = job.state == JobState::kParked;
  if (job.spec.walltime == Duration(0) || job.preemptible_since || !ends || parked) return Duration(0);
  const Duration ran = job.state == JobState::kRunning ? RanFor(job, clock_.Now()) : Duration(0);
  return std::max(Duration(0), job.spec.walltime - ran) + job.spec.kill_grace + kLookForTime;
}

// By jobs that run. Others may take longer to leave than they have time.
void Engine::Impl::AddReleases(std::vector<NodeRoom>& room) const {
  for (NodeRoom& node : room) {
    for (const auto& [id, rank] : state_.index.On(node.id)) {
      const JobRecord& job = *state_.unfinished.at(id);
      const bool runs = job.state == JobState::kRunning || job.state == JobState::kStarting;
      const Duration left = TimeLeft(job);
      if (runs && left > Duration(0) && !job.exited.contains(rank))
        node.releases.push_back({left, HeldBy(job, node.id)});
    }
  }
}

bool Engine::Impl::PlaceWaiting() {
  std::vector<Waiting> waiting;
  for (const auto& [id, idle] : state_.index.waiting()) {
    const JobRecord& job = *idle;
    if (MustWait(job)) continue;
    if (IsHosted(job)) continue;
    // Other on-demand jobs that are to start from the beginning are granted by AdvanceRequests.
    const bool on_demand = IsRequest(job);
    if (on_demand && job.state == JobState::kPending && !IsQueued(job)) continue;
    const int priority = on_demand ? std::numeric_limits<int>::max() : job.spec.priority;
    Waiting w{id, priority, job.submitted, job.spec.nodes, job.spec.per_node, TiedTo(job)};
    if (GoesOnFromImage(job)) w.only_on = WithoutExited(job, std::move(w.only_on));
    w.avoid = VacatedBy(job);
    w.at_most = TimeLeft(job);
    if (const std::set<NodeId>* tried = NotOn(job)) {
      if (!w.only_on.empty()) continue;
      w.not_on = *tried;
    }
    waiting.push_back(std::move(w));
  }
  queue_head_ = JobId();
  if (waiting.empty()) return false;
  const auto without_headroom = [&](const std::map<NodeId, Resources>& nodes) {
    std::vector<NodeRoom> room;
    for (const auto& [id, free] : nodes) room.push_back({id, free, {}});
    KeepHeadroom(room, waiting);
    return room;
  };
  // What cannot fit even on empty nodes waits for nodes to come, and must not hold back the rest meanwhile.
  std::map<NodeId, Resources> empty;
  for (NodeRoom& node : without_headroom(Capacities())) empty.emplace(std::move(node.id), node.free);
  std::erase_if(waiting, [&](const Waiting& job) { return !CouldFit(job, empty); });
  if (waiting.empty()) return false;
  std::vector<NodeRoom> room = without_headroom(Room({}));
  if (std::any_of(waiting.begin(), waiting.end(), [](const Waiting& w) { return w.at_most > Duration(0); }))
    AddReleases(room);
  const std::vector<Placement> placements = platform_.Place(waiting, std::move(room));
  queue_head_ = HeadOf(waiting, placements);
  for (const Placement& placement : placements) {
    JobRecord& job = state_.jobs[placement.job];
    JobMoved move;
    move.event = JobEvent::kPlace;
    const std::vector<NodeId> tied = TiedTo(job);
    move.nodes = tied.empty() ? placement.nodes : tied;
    if (GoesOnFromImage(job)) move.checkpoint = job.checkpoints.back();
    Move(job, std::move(move));
  }
  return !placements.empty();
}

// From now until its image is durable, its GPUs' state included; 0: not known.
Duration Engine::Impl::TimeToDump(const JobRecord& job, Tier tier) const {
  Duration longest{0};
  for (int rank : LiveRanks(job)) {
    const auto node = state_.observed_nodes.find(job.nodes[rank]);
    if (node == state_.observed_nodes.end()) return Duration(0);
    const v1::Heartbeat& heartbeat = node->second.heartbeat;
    const Rate dump = FromProto(tier == Tier::kLocal ? heartbeat.local() : heartbeat.shared()).dump;
    const Rate drain = FromProto(heartbeat.gpu()).dump;
    const v1::TaskReport& report = Seen(job, rank).report;
    if (!dump.known()) return Duration(0);
    Duration takes = dump.For(Bytes{report.memory() + report.gpu_memory()});
    if (report.gpu_memory() > 0 && drain.known()) takes += drain.For(Bytes{report.gpu_memory()});
    longest = std::max(longest, takes);
  }
  return longest;
}

CheckpointId Engine::Impl::CheckpointOf(const JobRecord& job, int number) const {
  // Their agents look for the images of a cluster manager's jobs under its name: it has numbers of its own.
  const std::string prefix = IsHosted(job) ? job.spec.cluster_manager + "-" : "";
  return CheckpointId(absl::StrCat(prefix, job.id.value(), ".", number));
}

JobMoved Engine::Impl::OrderDump(const JobRecord& job, Tier tier) const {
  JobMoved move;
  move.event = JobEvent::kOrderDump;
  move.checkpoint = CheckpointOf(job, job.checkpoint_count + 1);
  move.tier = tier;
  move.predicted = clock_.Now() + TimeToDump(job, tier);
  return move;
}

Duration Engine::Impl::NoticeOf(const JobRecord& job) const {
  return job.state == JobState::kRunning ? job.spec.notice : Duration(0);
}

JobMoved Engine::Impl::OrderLeave(const JobRecord& job, Tier tier) const {
  JobMoved move = OrderDump(job, tier);
  move.notice = NoticeOf(job);
  move.predicted += move.notice;
  return move;
}

bool Can(const JobRecord& job, Method method) {
  const bool leaves_gpus = method == Method::kSuspend || method == Method::kCheckpoint;
  if (leaves_gpus && job.gpu_states_lost > 0) return false;
  return job.spec.methods.Has(method) && !job.lost_methods.contains(method);
}

// How often it is to be saved; 0: never. Left to siding, it follows what an image costs now, so it changes
// with the job's memory and what the nodes measure.
Duration Engine::Impl::CheckpointIntervalOf(const JobRecord& job) const {
  if (!job.spec.auto_checkpoint_interval) return job.spec.checkpoint_interval;
  if (policy_.node_failures_per_year <= 0) return Duration(0);
  Duration cost = job.spec.app ? job.spec.app->grace : Duration(0);
  if (Can(job, Method::kCheckpoint)) {
    cost = TimeToDump(job, Tier::kShared);
  }
  if (cost <= Duration(0)) return Duration(0);
  const double mean_seconds = kSecondsPerYear / policy_.node_failures_per_year / job.spec.nodes;
  return CheckpointInterval(cost, FromSeconds(mean_seconds));
}

// By a step of a plan that is still to come.
bool Engine::Impl::LeavesWithin(const JobRecord& job, Duration time) const {
  const Time until = clock_.Now() + time;
  const auto& requests = state_.index.requests();
  return std::any_of(requests.begin(), requests.end(), [&](const auto& entry) {
    const JobRecord& request = *entry.second;
    if (!WaitsForItsNodes(request)) return false;
    const std::vector<PlanStep>& steps = request.plans.back().steps;
    return std::any_of(steps.begin(), steps.end(), [&](const PlanStep& step) {
      return step.job == job.id && !step.early && step.begin != Time{} && step.begin < until;
    });
  });
}

bool Engine::Impl::CheckpointOnSchedule(JobRecord& job) {
  if (job.state != JobState::kRunning) return false;
  const Duration interval = CheckpointIntervalOf(job);
  if (interval == Duration(0)) return false;
  if (clock_.Now() - std::max(job.durable_at, job.state_since) < interval) return false;
  // It will be saved when it leaves, and must not be busy with another image then.
  if (LeavesWithin(job, interval)) return false;
  // All ranks stand still until the last has answered.
  const std::vector<int> ranks = LiveRanks(job);
  if (!std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return IsHeard(job.nodes[rank]); }))
    return false;
  const auto can = [&](Method m) { return Can(job, m); };
  JobMoved move;
  if (can(Method::kCheckpoint)) {
    if (!HasRoomOnSchedule(job)) return false;
    move = OrderDump(job, Tier::kShared);
  } else if (can(Method::kApp) && GoesOnAfterSave(*job.spec.app)) {
    move.event = JobEvent::kOrderSave;
  } else {
    return false;
  }
  move.keep_running = true;
  move.reason = absl::StrCat("on schedule, every ", FormatDuration(interval));
  Move(job, std::move(move));
  return true;
}

// Its cluster manager has it still, or has not been heard yet: it may start it again, and it goes on from its
// images then, however it ended.
bool Engine::Impl::MayComeBack(const JobRecord& job) const {
  if (!IsHosted(job) || platform_.manager().empty()) return false;
  const ManagedJob* queued = QueuedAs(job.id);
  return queued != nullptr ? queued->phase != ManagedPhase::kOver : !state_.queue.seen;
}

// It may still go on from them, or somebody may want to look at what it failed of.
bool Engine::Impl::KeepsImages(const JobRecord& job) const {
  if (!job.ended || MayComeBack(job)) return true;
  return job.state == JobState::kFailed && clock_.Now() - *job.ended < policy_.keep_failed_images;
}

// Of a job that is not over the newest good ones are kept, and one at least. Those that are damaged are none
// of them: they are not counted, and do not push others out. An order to delete is recorded before it is
// given, and a checkpoint counts only when the images of all ranks are there, so an older one never goes
// before that.
void Engine::Impl::ExpireCheckpoints(JobRecord& job) {
  // One that was not finished: some ranks' images may count already, and nobody will ask for them.
  const auto last = state_.checkpoints.find(CheckpointOf(job, job.checkpoint_count));
  const bool in_the_making = job.state == JobState::kDumping || job.state == JobState::kCommitting;
  if (last != state_.checkpoints.end() && last->second.state.empty() && !in_the_making)
    Record(job.id, CheckpointChanged{last->first, "deleted", "it was not finished"});
  const bool over = !KeepsImages(job);
  const size_t keep = over ? 0 : static_cast<size_t>(std::max(1, policy_.keep_checkpoints));
  while (job.checkpoints.size() > keep) {
    // Copied: recording takes it off the list.
    const CheckpointId oldest = job.checkpoints.front();
    const char* why = !over                            ? "newer ones are kept"
                      : job.state == JobState::kFailed ? "its job has failed, and that long ago"
                                                       : "its job has ended";
    Record(job.id, CheckpointChanged{oldest, "deleted", why});
  }
}

}  // namespace siding
