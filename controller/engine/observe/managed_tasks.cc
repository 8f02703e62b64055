#include "controller/engine/observe/managed_tasks.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"
#include "controller/wire/wire.h"

namespace siding {
namespace {

// Cluster managers count their jobs with 32 bits. A larger number would leave none for siding's own jobs.
constexpr int64_t kLastManagedJob = std::numeric_limits<uint32_t>::max();

// Its agents say how it may be preempted. Not by a kill where the manager would not start it again.
absl::StatusOr<JobSpec> SpecOf(const v1::JobSpec& said) {
  absl::StatusOr<JobSpec> spec = ManagedFromProto(said);
  if (!spec.ok()) return spec;
  if (!OwnershipOf(*spec).siding_ends) spec->methods.Remove(Method::kKill);
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

// What the queue knows better than the agents: the user, the resources, the names.
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

// Tasks of a cluster manager's that are followed, of one node in a minute; others are with a later report.
constexpr int kMostClaims = 1200;
constexpr Duration kClaimsPeriod = std::chrono::minutes(1);

}  // namespace

void ManagedTasks::Follow(const NodeId& node, const v1::TaskReport& report) {
  // Agents do not decide where siding's own jobs run.
  if (report.spec().cluster_manager().empty() || !IsLive(report.phase())) return;
  const TaskId id = IdOf(report);
  if (id.job.value() > kLastManagedJob) return;
  const auto known = state_.jobs.find(id.job);
  const bool is_step = known != state_.jobs.end() && manager_.IsStepOf(known->second, id);
  const bool seen = known != state_.jobs.end() && id.incarnation <= known->second.incarnation;
  if (seen && !is_step && !IsTerminal(known->second.state)) return;
  const std::vector<ManagedTask> tasks = TasksTogether(node, report);
  if (tasks.empty() || !AreWholeJob(id.job, tasks)) return;
  if (!MayClaim(node)) return;
  const std::vector<NodeId> nodes = NodesUnder(tasks);
  const int first_rank = tasks.front().report->task().rank();
  int& claims = observed_.observed_nodes[node].claims;
  if (is_step) {
    ++claims;
    recorder_.Record(id.job, TasksChanged{nodes, first_rank});
    return;
  }
  const JobRecord* job = FindManaged(report);
  if (job == nullptr) return;
  ++claims;
  if (HoldsNodes(job->state))
    recovery_.FallBack(*job,
                       absl::StrCat("started again by ", job->spec.cluster_manager, " on ", node.value()));
  JobMoved move;
  move.event = JobEvent::kPlace;
  move.reason = "started by " + job->spec.cluster_manager;
  move.nodes = nodes;
  move.incarnation = id.incarnation;
  move.first_rank = first_rank;
  const auto from = state_.checkpoints.find(CheckpointId(report.checkpoint()));
  if (from != state_.checkpoints.end() && from->second.job == id.job) move.checkpoint = from->first;
  recorder_.Move(*job, std::move(move));
}

bool ManagedTasks::BackToScript(const JobRecord& job) {
  if (!IsExternallyManaged(job) || job.first_rank == 0) return false;
  const TaskId script{job.id, job.incarnation, 0};
  for (const auto& [node, tasks] : state_.observed_tasks) {
    if (!tasks.contains(script) || !manager_.MayRunOn(job.id, node)) continue;
    recorder_.Record(job.id, TasksChanged{{node}, 0});
    return true;
  }
  return false;
}

// Whether what a node says of a cluster manager's task may be written to the journal now.
bool ManagedTasks::MayClaim(const NodeId& node) {
  ObservedNode& observed = observed_.observed_nodes[node];
  const Time now = clock_.Now();
  if (now < observed.claiming_since || now >= observed.claiming_since + kClaimsPeriod) {
    observed.claiming_since = now;
    observed.claims = 0;
  }
  if (observed.claims < kMostClaims) return true;
  limited_log_.Warn(absl::StrCat("node ", node.value()),
                    absl::StrCat("node ", node.value(), " reports more than ", kMostClaims,
                                 " starts of a cluster manager's tasks in a minute; others are put off"));
  return false;
}

// The record of the job, made if it is new. Nothing: the report is not such a job's, or cannot be followed.
const JobRecord* ManagedTasks::FindManaged(const v1::TaskReport& report) {
  const JobId id(report.task().job());
  const auto found = state_.jobs.find(id);
  if (found != state_.jobs.end()) {
    const JobRecord& job = found->second;
    if (job.spec.cluster_manager != report.spec().cluster_manager()) return nullptr;
    // A job that ended may be started again: a requeue by the cluster manager itself looks like an end here.
    if (!IsTerminal(job.state)) return &job;
    const ManagedJob* queued = manager_.QueuedAs(id);
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
  if (const ManagedJob* queued = manager_.QueuedAs(id)) Complete(*spec, *queued);
  recorder_.Record(id, JobSubmitted{*std::move(spec)});
  return &state_.jobs.at(id);
}

// All tasks that the one of this report belongs to, in order; empty: they have not all been seen alive.
std::vector<ManagedTasks::ManagedTask> ManagedTasks::TasksTogether(const NodeId& node,
                                                                   const v1::TaskReport& report) const {
  const int count = std::max(1, report.spec().nodes());
  if (!manager_.MayRunOn(IdOf(report).job, node) || count > kRanksPerStep) return {};
  if (count == 1) return {{node, &report}};
  TaskId id = IdOf(report);
  const int first = id.rank - id.rank % kRanksPerStep;
  std::vector<ManagedTask> tasks;
  for (int i = 0; i < count; ++i) {
    id.rank = first + i;
    const size_t before = tasks.size();
    for (const auto& [other, there] : state_.observed_tasks) {
      const auto task = there.find(id);
      if (task != there.end() && IsLive(task->second.report.phase()) && manager_.MayRunOn(id.job, other)) {
        tasks.push_back({other, &task->second.report});
        break;
      }
    }
    if (tasks.size() == before) return {};
  }
  return tasks;
}

// A job leaves its nodes when these tasks do. A script on one of several nodes is not all of its job.
bool ManagedTasks::AreWholeJob(JobId id, const std::vector<ManagedTask>& tasks) const {
  const ManagedJob* queued = manager_.QueuedAs(id);
  if (queued == nullptr) return platform_.manager().empty();
  return queued->phase == ManagedPhase::kRunning &&
         std::all_of(queued->nodes.begin(), queued->nodes.end(), [&](const NodeId& node) {
           return std::any_of(tasks.begin(), tasks.end(),
                              [&](const ManagedTask& t) { return t.node == node; });
         });
}

}  // namespace siding
