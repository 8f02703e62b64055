#include "controller/engine/decide/planning.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/engine/decide/tentative_plan.h"
#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"
#include "controller/wire/wire.h"

namespace siding {
namespace {

Request RequestOf(JobId id, const JobSpec& spec) {
  return Request{id, spec.nodes, spec.per_node, spec.start_by, spec.not_before, spec.hold};
}

// The measured speed of a dump is used after this part (one in so many) of its bytes: before that, most of
// the time was spent stopping the processes.
constexpr int64_t kTellingPart = 5;

void AddTask(JobView& view, const NodeId& node, Bytes memory, Bytes on_gpus) {
  const auto found = std::find(view.nodes.begin(), view.nodes.end(), node);
  const auto place = static_cast<size_t>(found - view.nodes.begin());
  if (found == view.nodes.end()) {
    view.nodes.push_back(node);
    view.memory.emplace_back();
    if (view.per_node.gpus > 0) view.gpu_memory.emplace_back();
  }
  view.memory[place] += memory;
  if (view.per_node.gpus > 0) view.gpu_memory[place] += on_gpus;
}

// Also while a checkpoint is made after which it goes on. Others may take longer to leave than their
// walltime.
bool CountsAsRunning(const JobRecord& job) {
  const bool is_saved =
      job.state == JobState::kDumping || job.state == JobState::kCommitting || job.state == JobState::kSaving;
  return job.state == JobState::kRunning || job.state == JobState::kResuming ||
         (is_saved && job.current.keep_running && !job.in_ram);
}

}  // namespace

SharedTask Planning::TaskFor(JobId id, const JobSpec& spec, JobId without) const {
  const Time now = clock_.Now();
  std::vector<JobId> ids = {id};
  if (without != JobId()) ids.push_back(without);
  PlanningTask task{state_.last_seq,        policy_,      {RequestOf(id, spec)},
                    SnapshotFor(spec, ids), std::nullopt, {}};
  for (const JobView& job : task.alone.jobs) {
    const ManagedJob* queued = manager_.QueuedAs(job.id);
    if (queued != nullptr && !queued->allowances.empty()) task.allowances[job.id] = queued->allowances;
  }
  const auto its_nodes = platform_.NodesFor(spec);
  for (const auto& [other, job] : state_.index.requests()) {
    if (other == id || other == without || !WaitsForItsNodes(*job) || IsQueued(*job) ||
        job->spec.not_before > now || platform_.NodesFor(job->spec) != its_nodes)
      continue;
    task.requests.push_back(RequestOf(other, job->spec));
    ids.push_back(other);
  }
  if (task.requests.size() > 1 && policy_.strategy == Strategy::kLeastLoss)
    task.together = accounts_.Room(ids);
  return std::make_shared<const PlanningTask>(std::move(task));
}

Snapshot Planning::TakeSnapshot(const std::vector<JobId>& requests) const {
  Snapshot snapshot;
  snapshot.now = clock_.Now();
  snapshot.capabilities = platform_.capabilities();
  const std::map<NodeId, Resources> room = accounts_.Room(requests);
  double shared_rate = 0;
  std::map<NodeId, Bytes> resident;  // of running jobs
  std::map<NodeId, Bytes> frozen;
  std::map<NodeId, Bytes> to_come;  // from GPUs into RAM

  for (const auto& [id, unfinished] : state_.unfinished) {
    const JobRecord& job = *unfinished;
    if (const ManagedJob* queued = manager_.ComingBack(job); queued != nullptr && !IsKnownFromQueueOnly(job))
      snapshot.jobs.push_back(ViewOfComingBack(job, *queued));
    if (!HoldsNodes(job.state)) continue;
    for (int rank : cluster_.LiveRanks(job)) {
      const v1::TaskReport& report = cluster_.Seen(job, rank).report;
      // A job that is being frozen has its memory already as if it were, what is still on GPUs included.
      const bool stays = job.in_ram || job.state == JobState::kSuspending;
      (stays ? frozen : resident)[job.nodes[rank]] +=
          Bytes{report.memory() + (stays ? report.gpu_memory() : 0)};
      if (stays) to_come[job.nodes[rank]] += Bytes{report.gpu_memory()};
    }
    if (job.current.event == JobEvent::kOrderDump && job.current.tier == Tier::kShared &&
        (IsReleasing(job) || job.in_ram))
      snapshot.shared.in_flight += cluster_.ImageOf(job);
    if (IsSavedRunning(job) && job.current.event == JobEvent::kOrderDump && job.current.tier == Tier::kShared)
      snapshot.shared.in_flight += schedule_.BytesOfNext(job, Tier::kShared);
    if (job.in_ram && !KeepsItsNodes(job)) continue;
    JobView view = ViewOf(job);
    view.methods_back_at = job.methods_back_at;
    for (const auto& [method, why] : job.lost_methods) {
      if (!job.methods_back_at.contains(method)) view.methods.Remove(method);
      absl::StrAppend(&view.methods_note, view.methods_note.empty() ? "" : "; ", ToString(method), ": ", why);
    }
    for (int rank : cluster_.LiveRanks(job)) {
      const TaskSeen seen = cluster_.Seen(job, rank);
      const Bytes on_gpus{seen.report.gpu_memory()};
      view.gpu_lock = std::max(view.gpu_lock, Duration(seen.report.gpu_lock_us()));
      if (view.timer.empty()) view.timer = seen.report.timer();
      AddTask(view, job.nodes[rank], cluster_.ImageOf(job, rank), on_gpus);
      const auto lose = [&](Method method, const std::string& why) {
        if (why.empty() || !view.methods.Has(method)) return;
        view.methods.Remove(method);
        absl::StrAppend(&view.methods_note, view.methods_note.empty() ? "" : "; ", ToString(method), ": ",
                        why);
      };
      if (!OwnershipOf(job.spec).siding_starts && IsGone(seen.phase())) {
        view.methods = {};
        view.methods_note = "its tasks have ended, others of it are not known";
      }
      if (job.gpu_states_lost > 0) {
        for (Method method : {Method::kSuspend, Method::kCheckpoint}) lose(method, kGpuStateWasLost);
      }
      lose(Method::kSuspend, seen.report.cannot_drain());
      lose(Method::kCheckpoint, seen.report.cannot_drain());
      lose(Method::kCheckpoint, seen.report.cannot_checkpoint());
    }
    if (!view.nodes.empty()) {
      // A cluster manager may start several tasks on a node; siding starts one.
      const int together = static_cast<int>(cluster_.LiveRanks(job).size() / view.nodes.size());
      for (int i = 1; i < together; ++i) view.per_node += job.spec.per_node;
    }
    if (const ManagedJob* queued = manager_.QueuedAs(id); queued != nullptr && queued->suspended) {
      view.methods = {};
      view.methods_note = absl::StrCat("was suspended in ", job.spec.cluster_manager);
    }
    if (const ManagedJob* queued = manager_.QueuedAs(id); queued != nullptr && !queued->kept_by.empty()) {
      view.methods = {};
      view.methods_note = queued->kept_by;
    }
    if (manager_.HasOtherSteps(job)) {
      view.methods = {};
      view.methods_note = "another step of it runs beside";
    }
    // One that arrives has not begun to run yet.
    view.running_since = IsArriving(job.state) ? snapshot.now : job.running_since;
    view.ranks_wait = cluster_.RanksWait(job);
    AddImages(view, job);
    view.releasing_at = IsReleasing(job) ? ExpectedRelease(job) : std::nullopt;
    if (view.releasing_at) {
      view.releasing_for = job.displaced_by;
      view.releasing_to_ram = job.state == JobState::kSuspending;
    } else if (view.saved_by = SavedBy(job); view.saved_by) {
      // To end a cluster manager's job it is dumped as well.
      if (!OwnershipOf(job.spec).siding_ends)
        view.methods_back_at[Method::kKill] = std::max(view.methods_back_at[Method::kKill], *view.saved_by);
    } else if (job.state != JobState::kRunning && !IsArriving(job.state)) {
      view.methods = {};  // between two states: it can be asked again in a moment
      view.methods_note = absl::StrCat("is ", ToString(job.state));
      if (job.state == JobState::kSuspended)
        absl::StrAppend(&view.methods_note, ", and to ", job.spec.cluster_manager,
                        " has all that it requested; resume or vacate it");
    }
    snapshot.jobs.push_back(std::move(view));
  }

  const TierRoom::UnderWay under_way = tiers_.ToBeWritten();
  snapshot.shared.free = Bytes{0};
  for (const auto& [id, observed] : state_.observed_nodes) {
    NodeView node;
    node.id = id;
    node.usable = cluster_.Usable(id);
    node.capacity = cluster_.CapacityOf(id, observed);
    if (auto it = room.find(id); it != room.end()) node.free = it->second;
    // A job that is frozen keeps the memory it has, so that counts as available to it.
    node.ram_available = std::min(node.capacity.memory - frozen[id],
                                  Bytes{observed.heartbeat.ram_available()} + resident[id] - to_come[id]);
    node.local_disk_free = tiers_.Free(id, Tier::kLocal, under_way);
    node.shared_disk_free = tiers_.Free(id, Tier::kShared, under_way);
    node.local_problem = tiers_.ProblemOf(id, Tier::kLocal);
    node.shared_problem = tiers_.ProblemOf(id, Tier::kShared);
    node.local = FromProto(observed.heartbeat.local());
    node.shared = FromProto(observed.heartbeat.shared());
    node.gpu = FromProto(observed.heartbeat.gpu());
    // Each agent measures the tier as it finds it; the best of them is what the tier can take in all.
    if (node.usable) shared_rate = std::max(shared_rate, node.shared.dump.bytes_per_second);
    // It is away for those who have less, or they have not looked for a while.
    if (node.usable) snapshot.shared.free = std::max(snapshot.shared.free, node.shared_disk_free);
    snapshot.nodes.push_back(std::move(node));
  }
  snapshot.shared.bytes_per_second = policy_.SharedBandwidth(shared_rate) * policy_.ShareLeft();
  return snapshot;
}

std::optional<Time> Planning::ExpectedRelease(const JobRecord& job) const {
  const Time now = clock_.Now();
  // Another job may have to make way in its place, and needs its own time for that.
  if (job.state == JobState::kKilling && job.current.over_limit && now > job.current.predicted + kLookForTime)
    return std::nullopt;
  Time expected = std::max(job.current.predicted, now);
  // A drain waits for work on the GPUs, for an unknown time.
  if (job.state == JobState::kSuspending && job.spec.per_node.gpus > 0 && job.current.predicted != Time{}) {
    // One that is late is taken to be half-way through its delay; one that has failed begins again.
    expected = std::max(expected, now + (now - job.current.predicted));
    for (int rank : cluster_.LiveRanks(job)) {
      if (cluster_.Seen(job, rank).report.failed_op() >= OpOf(job))
        expected = std::max(expected, now + (job.current.predicted - job.state_since));
    }
  }
  if (job.state != JobState::kDumping) return expected;
  for (int rank : cluster_.LiveRanks(job)) {
    const std::optional<v1::Progress>& progress = cluster_.Seen(job, rank).progress;
    if (!progress || progress->bytes_per_second() <= 0) continue;
    if (progress->bytes_done() < progress->bytes_total() / kTellingPart) continue;
    const auto left = static_cast<double>(progress->bytes_total() - progress->bytes_done());
    expected = std::max(expected, now + FromSeconds(left / progress->bytes_per_second()));
  }
  return expected;
}

std::optional<Time> Planning::SavedBy(const JobRecord& job) const {
  if (!IsSavedRunning(job) || job.in_ram || job.current.predicted == Time{}) return std::nullopt;
  // One that is late is taken to be half-way through its delay, and never to be just about done: what is
  // ordered of it before it is done would not be carried out.
  const Time now = clock_.Now();
  return std::max(ExpectedRelease(job).value_or(now),
                  now + std::max(now - job.current.predicted, kLookForTime));
}

std::optional<Duration> Planning::TimeLeft(const JobRecord& job) const {
  if (!CountsAsRunning(job) && job.state != JobState::kPending && job.state != JobState::kStarting)
    return std::nullopt;
  // By this policy it runs on.
  if (job.preemptible_since || (IsRequest(job) && policy_.after_walltime == AfterWalltime::kPreemptible &&
                                OwnershipOf(job.spec).siding_limits))
    return std::nullopt;
  const Time now = clock_.Now();
  if (const ManagedJob* queued = manager_.QueuedAs(job.id); queued != nullptr && queued->ends_by)
    return *queued->ends_by - now;
  const Duration limit = job.spec.walltime > Duration(0) ? job.spec.walltime : job.spec.hold;
  if (limit == Duration(0)) return std::nullopt;
  Duration left = limit;
  if (CountsAsRunning(job)) left -= RanFor(job, now);
  // It is not ended in the middle of a checkpoint.
  if (job.current.keep_running && job.state != JobState::kRunning)
    left = std::max(left, job.current.predicted - now);
  return left + job.spec.kill_grace + kLookForTime;
}

std::optional<Time> Planning::ExpectedEnd(const JobRecord& job) const {
  if (!HoldsNodes(job.state)) return std::nullopt;
  const std::optional<Duration> left = TimeLeft(job);
  return left && *left > Duration(0) ? std::optional(clock_.Now() + *left) : std::nullopt;
}

JobView Planning::ViewOf(const JobRecord& job) const {
  JobView view;
  view.id = job.id;
  view.kind = IsRequest(job) ? JobKind::kOnDemand : JobKind::kBatch;
  view.priority = job.spec.priority;
  view.job_class = policy_.ClassOf(job.spec);
  view.per_node = job.spec.per_node;
  view.methods = job.spec.methods;
  if (job.spec.app) view.app_grace = job.spec.app->grace;
  view.kill_grace = job.spec.kill_grace;
  view.notice = job.spec.notice;
  view.preemptions = job.preemptions;
  view.max_preemptions = job.spec.max_preemptions;
  view.last_preempted = job.last_preempted;
  view.ends_at = ExpectedEnd(job);
  view.can_return_to_its_nodes = manager_.WhyNotLocal(job).empty();
  return view;
}

bool Planning::StandsOn(const TentativePlan& tentative) const {
  const std::vector<Event> since = recorder_.events().After(tentative.seq, EventLog::kRecent, Duration(0));
  if (std::any_of(since.begin(), since.end(),
                  [&](const Event& event) { return Invalidates(event, tentative); }))
    return false;
  std::vector<JobId> requests;
  for (const Plan& plan : tentative.plans) {
    requests.push_back(plan.request);
    for (const PlanStep& step : plan.steps) {
      if (!std::all_of(step.nodes.begin(), step.nodes.end(),
                       [&](const NodeId& n) { return cluster_.Usable(n); }))
        return false;
    }
  }
  const std::map<NodeId, Resources> room = accounts_.Room(requests);
  return std::all_of(tentative.free.begin(), tentative.free.end(), [&](const auto& then) {
    const auto now = room.find(then.first);
    return now != room.end() && now->second == then.second;
  });
}

// A better plan may be possible by now. That is true a moment after any plan, and not worth another one.
bool Planning::StillGood(const TentativePlan& tentative, const JobSpec& spec) const {
  const Plan& first = tentative.plans.front();
  return IsInTime(tentative, RequestOf(first.request, spec), policy_, clock_.Now()) && StandsOn(tentative);
}

bool Planning::CouldEverFit(const JobSpec& spec) const {
  const auto its_nodes = platform_.NodesFor(spec);
  int missing = spec.nodes;
  for (const auto& [id, observed] : state_.observed_nodes) {
    if (its_nodes && !its_nodes->contains(id)) continue;
    missing -= !state_.IsLost(id) && cluster_.CapacityOf(id, observed).Covers(spec.per_node);
  }
  return missing <= 0;
}

bool Planning::Queue(const JobSpec& spec, Plan& plan) const {
  if (!CouldEverFit(spec)) return false;
  plan.queued = true;
  return true;
}

// As these requests see it, which are all of this one's kind.
Snapshot Planning::SnapshotFor(const JobSpec& spec, const std::vector<JobId>& requests) const {
  Snapshot snapshot = TakeSnapshot(requests);
  if (const auto nodes = platform_.NodesFor(spec)) {
    for (NodeView& node : snapshot.nodes) node.usable = node.usable && nodes->contains(node.id);
  }
  return snapshot;
}

// What is known of its images.
void Planning::AddImages(JobView& view, const JobRecord& job) const {
  view.durable_at = job.durable_at;
  view.most_lost = schedule_.MostLost(job);
  const Duration restore = cluster_.TimeToRestore(job);
  if (restore > Duration(0) && ResumptionOf(state_, job) == Resumption::kCheckpoint) view.way_back = restore;
  const auto cost = Expected(job.checkpoint_costs, Tier::kShared);
  if (cost && schedule_.HasOne(job)) view.checkpoint_stop = cost->stop;
}

// It will be running in a moment, and can be asked to leave then.
JobView Planning::ViewOfComingBack(const JobRecord& job, const ManagedJob& queued) const {
  JobView view = ViewOf(job);
  view.per_node = queued.spec.per_node;
  view.nodes = queued.nodes;
  const int nodes = std::max<int>(1, static_cast<int>(queued.nodes.size()));
  const Bytes image{job.checkpoints.empty() ? 1 : state_.checkpoints.at(job.checkpoints.back()).bytes.value};
  view.memory.assign(queued.nodes.size(), Bytes{std::max<int64_t>(1, image.value / nodes)});
  if (view.per_node.gpus > 0) view.gpu_memory.assign(queued.nodes.size(), Bytes{0});
  view.running_since = queued.started.value_or(clock_.Now());
  view.durable_at = clock_.Now();
  return view;
}

}  // namespace siding
