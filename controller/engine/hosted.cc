// Jobs whose tasks a cluster manager starts. It decides when and where they run, and the engine follows: what
// the agents report is how it learns of a task's start. Orders to such a job go the usual way; its tasks
// leave, and the cluster manager puts it back into its own queue. What that queue says is queue.cc's.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "controller/engine/impl.h"
#include "controller/wire/wire.h"

namespace siding {
namespace {

// Each step of a job has so many numbers for its tasks' ranks; 0 is the script's.
constexpr int kRanksPerStep = 65536;
// Cluster managers count their jobs with 32 bits. Behind a larger number there would be no room for ours.
constexpr int64_t kLastHostedJob = std::numeric_limits<uint32_t>::max();

// How it may be preempted comes from its agents. A kill would be the end of it: nothing would start it again.
absl::StatusOr<JobSpec> SpecOf(const v1::JobSpec& said) {
  absl::StatusOr<JobSpec> spec = HostedFromProto(said);
  if (!spec.ok()) return spec;
  spec->methods.Remove(Method::kKill);
  spec->nodes = std::max(1, spec->nodes);
  if (spec->per_node == Resources()) spec->per_node.slots = 1;
  if (spec->user.empty()) spec->user = absl::StrCat(spec->uid);
  return spec;
}

template <class Tasks>
std::vector<NodeId> NodesUnder(const Tasks& tasks) {
  std::vector<NodeId> nodes;
  for (const auto& task : tasks) nodes.push_back(task.node);
  return nodes;
}

// What the queue knows better than the agents: who, how much, under which names.
void Complete(JobSpec& spec, const ManagedJob& queued) {
  spec.name = queued.spec.name;
  spec.uid = queued.spec.uid;
  spec.gid = queued.spec.gid;
  spec.user = queued.spec.user;
  spec.labels = queued.spec.labels;
  const int nodes = std::max<int>(1, static_cast<int>(queued.nodes.size()));
  const int tasks_per_node = std::max(1, spec.nodes / nodes);
  const auto share = [&](auto whole) { return (whole + tasks_per_node - 1) / tasks_per_node; };
  spec.per_node.slots = share(queued.spec.per_node.slots);
  spec.per_node.gpus = share(queued.spec.per_node.gpus);
  spec.per_node.memory = Bytes{share(queued.spec.per_node.memory.value)};
}

}  // namespace

bool IsHosted(const JobRecord& job) { return !job.spec.cluster_manager.empty(); }

bool IsSeenInQueueOnly(const JobRecord& job) { return IsHosted(job) && job.spec.kind == JobKind::kOnDemand; }

// All tasks that the one of this report belongs to, in order; empty: they have not all been seen alive.
std::vector<Engine::Impl::HostedTask> Engine::Impl::TasksTogether(const NodeId& node,
                                                                  const v1::TaskReport& report) const {
  const int count = std::max(1, report.spec().nodes());
  if (!MayRunOn(IdOf(report).job, node) || count > kRanksPerStep) return {};
  if (count == 1) return {{node, &report}};
  TaskId id = IdOf(report);
  const int first = id.rank - id.rank % kRanksPerStep;
  std::vector<HostedTask> tasks;
  for (int i = 0; i < count; ++i) {
    id.rank = first + i;
    const size_t before = tasks.size();
    for (const auto& [other, there] : state_.observed_tasks) {
      const auto task = there.find(id);
      if (task != there.end() && IsLive(task->second.report.phase()) && MayRunOn(id.job, other)) {
        tasks.push_back({other, &task->second.report});
        break;
      }
    }
    if (tasks.size() == before) return {};
  }
  return tasks;
}

// The record of the job, made if it is new. Nothing: the report is not such a job's, or cannot be followed.
JobRecord* Engine::Impl::FindHosted(const v1::TaskReport& report) {
  const JobId id(report.task().job());
  const auto found = state_.jobs.find(id);
  if (found != state_.jobs.end()) {
    JobRecord& job = found->second;
    if (job.spec.cluster_manager != report.spec().cluster_manager()) return nullptr;
    // One that ended may be started again: for us a requeue by the cluster manager itself looks like an end.
    if (!IsTerminal(job.state)) return &job;
    const ManagedJob* queued = QueuedAs(id);
    const bool number_used_again = queued != nullptr && job.ended && queued->submitted > *job.ended;
    if (report.task().incarnation() <= job.incarnation && !number_used_again) return nullptr;
  }
  absl::StatusOr<JobSpec> spec = SpecOf(report.spec());
  if (!spec.ok()) {
    const std::string& manager = report.spec().cluster_manager();
    limited_log_.Warn("jobs of cluster managers", absl::StrCat("job ", id.value(), " of ", manager,
                                                               " is left alone: ", spec.status().message()));
    return nullptr;
  }
  if (const ManagedJob* queued = QueuedAs(id)) Complete(*spec, *queued);
  Record(id, JobSubmitted{*std::move(spec)});
  return &state_.jobs[id];
}

// While a job runs, the queue knows where. An agent elsewhere that reports a task of it is not believed.
bool Engine::Impl::MayRunOn(JobId id, const NodeId& node) const {
  const ManagedJob* queued = QueuedAs(id);
  return queued == nullptr || queued->phase != ManagedPhase::kRunning ||
         std::find(queued->nodes.begin(), queued->nodes.end(), node) != queued->nodes.end();
}

// A job leaves its nodes when these tasks do. A script on one of several nodes is not all of its job.
bool Engine::Impl::AreWholeJob(JobId id, const std::vector<HostedTask>& tasks) const {
  const ManagedJob* queued = QueuedAs(id);
  if (queued == nullptr) return platform_.manager().empty();
  return queued->phase == ManagedPhase::kRunning &&
         std::all_of(queued->nodes.begin(), queued->nodes.end(), [&](const NodeId& node) {
           return std::any_of(tasks.begin(), tasks.end(),
                              [&](const HostedTask& t) { return t.node == node; });
         });
}

// A script that has started a step cannot be dumped, the step can: it stands for the job while it runs. So
// does the next one after it.
bool Engine::Impl::IsStepOf(const JobRecord& job, const TaskId& task) const {
  if (!IsHosted(job) || job.state != JobState::kRunning || task.incarnation != job.incarnation ||
      task.rank < kRanksPerStep)
    return false;
  const std::vector<int> ranks = LiveRanks(job);
  return job.first_rank == 0 || std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
           return task.rank != job.first_rank + rank && IsGone(Seen(job, rank).phase());
         });
}

// A step has ended, but the job has not: what else it does, nobody has said. That it is over, the queue will
// say.
bool Engine::Impl::GoesOnInQueue(const JobRecord& job) const {
  if (!IsHosted(job) || job.first_rank == 0 || job.state != JobState::kRunning) return false;
  const ManagedJob* queued = QueuedAs(job.id);
  return queued != nullptr && queued->phase == ManagedPhase::kRunning && queued->starts <= job.incarnation;
}

// Tasks of another step of the job run beside those that stand for it: these cannot leave without them.
bool Engine::Impl::HasOtherSteps(const JobRecord& job) const {
  if (!IsHosted(job) || job.first_rank == 0) return false;
  for (const NodeId& node : job.nodes) {
    const auto tasks = state_.observed_tasks.find(node);
    if (tasks == state_.observed_tasks.end()) continue;
    for (auto task = tasks->second.lower_bound(TaskId{job.id, job.incarnation, kRanksPerStep});
         task != tasks->second.end() && task->first.job == job.id; ++task) {
      const bool own = task->first.rank / kRanksPerStep == job.first_rank / kRanksPerStep;
      if (!own && IsLive(task->second.report.phase())) return true;
    }
  }
  return false;
}

// A step has ended, its script goes on, or has ended with it: what that comes to is the job's end.
bool Engine::Impl::BackToScript(JobRecord& job) {
  if (!IsHosted(job) || job.first_rank == 0) return false;
  const TaskId script{job.id, job.incarnation, 0};
  for (const auto& [node, tasks] : state_.observed_tasks) {
    if (!tasks.contains(script) || !MayRunOn(job.id, node)) continue;
    Record(job.id, TasksChanged{{node}, 0});
    return true;
  }
  return false;
}

void Engine::Impl::Follow(const NodeId& node, const v1::TaskReport& report) {
  // Where siding's own jobs run is not for agents to say.
  if (report.spec().cluster_manager().empty() || !IsLive(report.phase())) return;
  const TaskId id = IdOf(report);
  if (id.job.value() > kLastHostedJob) return;
  const auto known = state_.jobs.find(id.job);
  const bool is_step = known != state_.jobs.end() && IsStepOf(known->second, id);
  const bool seen = known != state_.jobs.end() && id.incarnation <= known->second.incarnation;
  if (seen && !is_step && !IsTerminal(known->second.state)) return;
  const std::vector<HostedTask> tasks = TasksTogether(node, report);
  if (tasks.empty() || !AreWholeJob(id.job, tasks)) return;
  if (!MayClaim(node)) return;
  const std::vector<NodeId> nodes = NodesUnder(tasks);
  const int first_rank = tasks.front().report->task().rank();
  int& claims = state_.observed_nodes[node].claims;
  if (is_step) {
    ++claims;
    Record(id.job, TasksChanged{nodes, first_rank});
    return;
  }
  JobRecord* job = FindHosted(report);
  if (job == nullptr) return;
  ++claims;
  if (HoldsNodes(job->state))
    FallBack(*job, absl::StrCat("started again by ", job->spec.cluster_manager, " on ", node.value()));
  JobMoved move;
  move.event = JobEvent::kPlace;
  move.reason = "started by " + job->spec.cluster_manager;
  move.nodes = nodes;
  move.incarnation = id.incarnation;
  move.first_rank = first_rank;
  const auto from = state_.checkpoints.find(CheckpointId(report.checkpoint()));
  if (from != state_.checkpoints.end() && from->second.job == id.job) move.checkpoint = from->first;
  Move(*job, std::move(move));
}

// An agent chooses what a task of a cluster manager goes on from. It sees its own disk and the shared tier:
// of images on the disks of other ranks' nodes it cannot know whether they are whole
// (agent/slurm/registration.h).
std::string Engine::Impl::WhyNotLocal(const JobRecord& job) const {
  if (!IsHosted(job)) return "";
  if (job.spec.nodes > 1) return "it has several tasks, and goes on from shared storage only";
  const ManagedJob* queued = QueuedAs(job.id);
  if (queued == nullptr || queued->can_be_pinned) return "";
  return absl::StrCat(job.spec.cluster_manager, " cannot be told to start it where its image would be");
}

}  // namespace siding
