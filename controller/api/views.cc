#include "controller/api/views.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/engine/decide/plan_record.h"
#include "controller/engine/state/image_copies.h"
#include "controller/engine/state/predicates.h"
#include "controller/wire/wire.h"

namespace siding {
namespace {

const ObservedTask* FindTask(const ClusterState& state, const JobRecord& job, int rank) {
  auto node = state.observed_tasks.find(job.nodes[rank]);
  if (node == state.observed_tasks.end()) return nullptr;
  auto task = node->second.find(TaskId{job.id, job.incarnation, job.first_rank + rank});
  return task == node->second.end() ? nullptr : &task->second;
}

void Note(v1::Job& view, const std::string& why) {
  absl::StrAppend(view.mutable_methods_note(), view.methods_note().empty() ? "" : "; ", why);
}

// What the tasks say of themselves, added up; and the methods that are left of `works`.
void AddObserved(const ClusterState& state, const JobRecord& job, MethodSet works, v1::Job& view) {
  int64_t memory = 0;
  for (int rank = 0; rank < static_cast<int>(job.nodes.size()); ++rank) {
    const ObservedTask* task = FindTask(state, job, rank);
    if (task == nullptr) continue;
    memory += task->report.memory();
    const v1::TaskReport& report = task->report;
    memory += report.gpu_memory();
    const bool matters = works.Has(Method::kSuspend) || works.Has(Method::kCheckpoint);
    if (matters && !report.cannot_drain().empty()) {
      Note(view, absl::StrCat("suspend, checkpoint: ", report.cannot_drain()));
    } else if (matters && !report.cannot_checkpoint().empty()) {
      Note(view, absl::StrCat("checkpoint: ", report.cannot_checkpoint()));
    }
    if (view.timer().empty()) view.set_timer(report.timer());
    for (const std::string& gpu : report.gpus()) view.add_gpus(gpu);
    if (!report.cannot_drain().empty()) works.Remove(Method::kSuspend);
    if (!report.cannot_drain().empty() || !report.cannot_checkpoint().empty())
      works.Remove(Method::kCheckpoint);
    if (!task->progress) continue;
    v1::JobProgress& progress = *view.mutable_progress();
    progress.set_what(job.state == JobState::kRestoring ? "restore" : "dump");
    progress.set_bytes_done(progress.bytes_done() + task->progress->bytes_done());
    progress.set_bytes_total(progress.bytes_total() + task->progress->bytes_total());
    progress.set_bytes_per_second(progress.bytes_per_second() + task->progress->bytes_per_second());
  }
  view.set_memory(memory);
  for (Method method : kAllMethods) {
    if (works.Has(method)) view.add_methods(ToProto(method));
  }
}

v1::Back::Kind ShowKind(BackKind kind) {
  switch (kind) {
    case BackKind::kFree:
      return v1::Back::FREE;
    case BackKind::kWalltime:
      return v1::Back::WALLTIME;
    case BackKind::kExpected:
      return v1::Back::EXPECTED;
    case BackKind::kLeaving:
      return v1::Back::LEAVING;
    case BackKind::kRetry:
      return v1::Back::RETRY;
    case BackKind::kNoEnd:
      return v1::Back::NO_END;
    case BackKind::kNodeAway:
      return v1::Back::NODE_AWAY;
    case BackKind::kTooFew:
      return v1::Back::TOO_FEW;
    case BackKind::kBehind:
      return v1::Back::BEHIND;
    case BackKind::kTooMuch:
      return v1::Back::TOO_MUCH;
    case BackKind::kHeld:
      return v1::Back::HELD;
    case BackKind::kDecision:
      return v1::Back::DECISION;
    case BackKind::kTasksLeft:
      return v1::Back::TASKS_LEFT;
    case BackKind::kManager:
      return v1::Back::MANAGER;
  }
  return v1::Back::KIND_UNSPECIFIED;
}

// Null: there is none, or it may not be seen.
const JobRecord* SeenJob(const ClusterState& state, const MaySeeJob& may_see, JobId id) {
  const auto it = state.jobs.find(id);
  return it == state.jobs.end() || !may_see(it->second) ? nullptr : &it->second;
}

// Without the jobs that are there.
v1::Node ShowNode(const ClusterState& state, const NodeId& id, const ObservedNode& observed) {
  v1::Node view;
  view.set_name(id.value());
  auto record = state.nodes.find(id);
  const bool cordoned = record != state.nodes.end() && record->second.cordoned;
  const auto managed = state.queue.nodes.find(id);
  const bool drained = managed != state.queue.nodes.end() && !managed->second.usable;
  const bool lost = state.IsLost(id);
  view.set_state(lost                  ? "lost"
                 : !observed.connected ? "down"
                 : observed.silent     ? "silent"
                 : cordoned            ? "cordoned"
                 : drained             ? "drained"
                 : observed.faulty     ? "faulty"
                                       : "up");
  view.set_fault(WhyFaulty(observed));
  if (lost) view.set_lost_since_us(ToMicros(*record->second.lost_since));
  *view.mutable_capacity() =
      managed == state.queue.nodes.end() ? observed.hello.capacity() : ToProto(managed->second.capacity);
  view.set_criu(observed.hello.criu());
  view.set_criu_problem(observed.hello.criu_problem());
  view.set_ram_available(observed.heartbeat.ram_available());
  view.set_local_disk_free(observed.heartbeat.local_disk_free());
  view.set_shared_disk_free(observed.heartbeat.shared_disk_free());
  *view.mutable_local() = observed.heartbeat.local();
  *view.mutable_shared() = observed.heartbeat.shared();
  *view.mutable_gpu() = observed.heartbeat.gpu();
  view.set_gpu_problem(observed.hello.gpu_problem());
  view.set_fence_problem(observed.hello.fence_problem());
  for (const v1::Gpu& gpu : observed.hello.gpus()) view.add_gpu_names(gpu.name());
  view.set_last_heard_us(ToMicros(observed.last_heard));
  view.set_certificate_ends_us(observed.heartbeat.certificate_ends_us());
  view.set_local_in_memory(observed.heartbeat.local_in_memory());
  return view;
}

// Those that agents have dialled from, and those that are lost, which they may have been for longer than this
// controller lives.
std::map<NodeId, const ObservedNode*> AllNodes(const ClusterState& state) {
  static const ObservedNode kNeverHeard;
  std::map<NodeId, const ObservedNode*> nodes;
  for (const auto& [id, observed] : state.observed_nodes) nodes[id] = &observed;
  for (const auto& [id, record] : state.nodes) {
    if (record.lost_since) nodes.emplace(id, &kNeverHeard);
  }
  return nodes;
}

void AddStrays(const ClusterState& state, const NodeId& node, v1::Node& view) {
  const auto tasks = state.observed_tasks.find(node);
  if (tasks == state.observed_tasks.end()) return;
  for (const auto& [id, task] : tasks->second) {
    if (IsStray(state, id, task.report)) view.add_strays(ToString(id));
  }
}

void AddJobs(const ClusterState& state, const NodeId& node, v1::Node& view) {
  Resources used{0, Bytes{0}, 0};
  JobId last;
  for (const auto& [id, rank] : state.index.On(node)) {
    if (std::exchange(last, id) == id) continue;  // another rank of it
    const JobRecord& job = *state.unfinished.at(id);
    if (job.in_ram) {
      view.add_suspended_jobs(id.value());
    } else {
      view.add_jobs(id.value());
      used += job.spec.per_node;
    }
  }
  *view.mutable_used() = ToProto(used);
}

// That it was started from the beginning is said until it has ended, whatever else is to be said.
std::string WhyAsItIs(const JobRecord& job) {
  if (job.begun == Time{} || IsTerminal(job.state)) return job.reason;
  const std::string again =
      absl::StrCat("started from the beginning again at ", FormatTime(job.begun), ": ", job.restart_reason);
  return job.reason.empty() || job.reason == job.restart_reason ? again
                                                                : absl::StrCat(job.reason, "; ", again);
}

// It is off these nodes, or holds nothing there but memory.
bool IsAway(const ClusterState& state, JobId id, const std::vector<NodeId>& nodes) {
  const auto found = state.unfinished.find(id);
  if (found == state.unfinished.end() || !HoldsNodes(found->second->state)) return true;
  const JobRecord& job = *found->second;
  return job.in_ram || std::none_of(nodes.begin(), nodes.end(), [&](const NodeId& node) {
           return std::find(job.nodes.begin(), job.nodes.end(), node) != job.nodes.end();
         });
}

// A plan says nothing of those that left by an earlier one.
bool HasMadeWayFor(const ClusterState& state, JobId id, JobId request) {
  const auto found = state.jobs.find(id);
  if (found == state.jobs.end()) return false;
  const JobRecord& job = found->second;
  return job.displaced_by == request || (IsTerminal(job.state) && job.current.request == request);
}

void AddVictims(const ClusterState& state, const JobRecord& request, v1::PlanSummary& view) {
  std::map<JobId, bool> away;  // by victim
  for (const PlanStep& step : request.plans.back().steps)
    away.insert_or_assign(step.job, IsAway(state, step.job, step.nodes));
  for (const Plan& plan : request.plans) {
    for (const PlanStep& step : plan.steps) {
      if (!away.contains(step.job) && HasMadeWayFor(state, step.job, request.id))
        away.emplace(step.job, IsAway(state, step.job, step.nodes));
    }
  }
  view.set_victims(static_cast<int>(away.size()));
  view.set_victims_away(static_cast<int>(
      std::count_if(away.begin(), away.end(), [](const auto& victim) { return victim.second; })));
}

void AddPlan(const ClusterState& state, const JobRecord& request, v1::Job& view) {
  if (request.plans.empty()) return;
  const Plan& newest = request.plans.back();
  v1::PlanSummary& plan = *view.mutable_plan();
  plan.set_feasible(newest.feasible);
  plan.set_queued(newest.queued);
  plan.set_refusal(newest.refusal);
  plan.set_plans(static_cast<int>(request.plans.size()));
  if (newest.feasible) {
    plan.set_predicted_start_us(ToMicros(newest.predicted_start));
    plan.set_margin_us(ToMicros(request.spec.start_by) - plan.predicted_start_us());
  }
  if (WaitsForItsNodes(request)) AddVictims(state, request, plan);
}

void AddMove(const JobMoved& move, v1::Event& view) {
  view.set_request(move.request.value());
  for (const NodeId& node : move.nodes) view.add_nodes(node.value());
  if (move.predicted != Time{}) view.set_predicted_us(ToMicros(move.predicted));
  view.set_checkpoint(move.checkpoint.value());
  view.set_bytes(move.bytes.value);
}

}  // namespace

v1::Job ShowJob(const ClusterState& state, const JobRecord& job) {
  v1::Job view;
  view.set_id(job.id.value());
  *view.mutable_spec() = ToProto(job.spec);
  view.set_state(ToString(job.state));
  for (const NodeId& node : job.nodes) view.add_nodes(node.value());
  view.set_incarnation(job.incarnation);
  view.set_submitted_us(ToMicros(job.submitted));
  view.set_state_since_us(ToMicros(job.state_since));
  if (job.first_started) view.set_first_started_us(ToMicros(*job.first_started));
  if (job.ended) view.set_ended_us(ToMicros(*job.ended));
  view.set_exit_code(job.exit_code);
  view.set_preemptions(job.preemptions);
  view.set_lost_node_seconds(job.lost_node_seconds);
  view.set_reason(WhyAsItIs(job));
  view.set_made_way_for(job.displaced_by.value());
  if (job.held) view.set_held_by(job.held->by_operator ? "operator" : "user");
  if (job.first_started && job.spec.kind == JobKind::kOnDemand && *job.first_started > job.spec.start_by) {
    absl::StrAppend(view.mutable_reason(), view.reason().empty() ? "" : "; ", "started ",
                    FormatDuration(*job.first_started - job.spec.start_by), " after its deadline");
  }
  MethodSet works = job.spec.methods;
  for (const auto& [method, why] : job.lost_methods) {
    works.Remove(method);
    Note(view, absl::StrCat(ToString(method), ": ", why));
  }
  if (job.gpu_states_lost > 0) {
    works.Remove(Method::kSuspend);
    works.Remove(Method::kCheckpoint);
    Note(view, absl::StrCat("suspend, checkpoint: ", kGpuStateWasLost));
  }
  if (const CheckpointRecord* newest = NewestImage(state, job)) view.set_checkpoint(newest->id.value());
  AddObserved(state, job, works, view);
  AddPlan(state, job, view);
  return view;
}

void LeaveOutWhatItRuns(v1::JobSpec& spec) {
  spec.clear_command();
  spec.clear_env();
  spec.clear_workdir();
  spec.clear_output();
  spec.clear_app();
}

v1::Job ShowOthersJob(const ClusterState& state, const JobRecord& job) {
  v1::Job view = ShowJob(state, job);
  LeaveOutWhatItRuns(*view.mutable_spec());
  view.clear_reason();
  view.clear_methods_note();
  view.clear_timer();
  view.clear_held_by();
  view.clear_plan();
  return view;
}

v1::Back ShowBack(const Back& back, bool names_job) {
  v1::Back view;
  if (back.predicted) view.set_predicted_us(ToMicros(*back.predicted));
  if (back.latest) view.set_latest_us(ToMicros(*back.latest));
  for (const NodeId& node : back.nodes) view.add_nodes(node.value());
  v1::Back::Because& because = *view.mutable_because();
  because.set_kind(ShowKind(back.because.kind));
  if (names_job) because.set_job(back.because.job.value());
  because.set_node(back.because.node.value());
  because.set_image(back.because.image);
  return view;
}

v1::ListNodesResponse ShowNodes(const ClusterState& state) {
  v1::ListNodesResponse nodes;
  for (const auto& [id, observed] : AllNodes(state)) {
    v1::Node& view = *nodes.add_nodes();
    view = ShowNode(state, id, *observed);
    AddJobs(state, id, view);
    AddStrays(state, id, view);
  }
  return nodes;
}

v1::CheckpointInfo ShowCheckpoint(const ClusterState& state, const CheckpointRecord& checkpoint) {
  v1::CheckpointInfo view;
  view.set_id(checkpoint.id.value());
  view.set_job(checkpoint.job.value());
  view.set_tier(ToProto(checkpoint.tier));
  for (const NodeId& node : checkpoint.nodes) view.add_nodes(node.value());
  view.set_bytes(checkpoint.bytes.value);
  view.set_new_bytes(checkpoint.new_bytes.value);
  view.set_created_us(ToMicros(checkpoint.created));
  view.set_state(ToString(checkpoint.state));
  view.set_note(checkpoint.note);
  view.set_stopped_us(checkpoint.stopped.count());
  view.set_took_us(checkpoint.took.count());
  view.set_on_nodes(checkpoint.copies == NodeCopies::kUsed);
  if (checkpoint.tier == Tier::kLocal) view.set_copied_bytes(CopiedSoFar(state, checkpoint).value);
  return view;
}

PlanContext ContextOf(const ClusterState& state, const Plan& plan, const MaySeeJob& may_see) {
  PlanContext context;
  const auto look = [&](JobId id) {
    if (const JobRecord* job = SeenJob(state, may_see, id)) context.names.emplace(id, job->spec.name);
  };
  for (const PlanStep& step : plan.steps) look(step.job);
  for (const PlanKeep& keep : plan.kept) look(keep.job);
  for (const PlanWithout& without : plan.without)
    std::for_each(without.jobs.begin(), without.jobs.end(), look);
  const auto request = state.jobs.find(plan.request);
  if (request != state.jobs.end()) context.start_by = request->second.spec.start_by;
  return context;
}

v1::Plan ShowPlan(Plan plan, const PlanContext& context, bool sees_all, int32_t most_kept) {
  const auto unseen = [&](JobId id) { return !context.names.contains(id); };
  std::erase_if(plan.kept, [&](const PlanKeep& keep) { return unseen(keep.job); });
  for (PlanWithout& without : plan.without) std::erase_if(without.jobs, unseen);
  if (!sees_all) plan.kept_groups.clear();
  if (most_kept >= 0) {
    plan = WithSomeKept(std::move(plan),
                        most_kept == kKeptOfRecord ? kMostKeptRecorded : static_cast<size_t>(most_kept));
  }
  v1::Plan view = ToProto(plan);
  for (v1::PlanStep& step : *view.mutable_steps()) {
    if (const auto name = context.names.find(JobId(step.job())); name != context.names.end())
      step.set_job_name(name->second);
  }
  for (v1::PlanKeep& kept : *view.mutable_kept()) kept.set_job_name(context.names.at(JobId(kept.job())));
  if (context.start_by != Time{}) view.set_start_by_us(ToMicros(context.start_by));
  return view;
}

v1::Event ShowEvent(const Event& event) {
  v1::Event view;
  view.set_seq(event.seq);
  view.set_at_us(ToMicros(event.at));
  view.set_job(event.job.value());
  view.set_kind(KindOf(event));
  view.set_text(Describe(event));
  view.set_by(ByWhom(event));
  if (const auto* move = std::get_if<JobMoved>(&event.body)) AddMove(*move, view);
  if (const auto* policy = std::get_if<PolicyChanged>(&event.body))
    view.mutable_changes()->Assign(policy->changes.begin(), policy->changes.end());
  return view;
}

}  // namespace siding
