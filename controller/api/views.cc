#include "controller/api/views.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "controller/wire/wire.h"

namespace siding {
namespace {

const ObservedTask* FindTask(const ClusterState& state, const JobRecord& job, int rank) {
  auto node = state.observed_tasks.find(job.nodes[rank]);
  if (node == state.observed_tasks.end()) return nullptr;
  auto task = node->second.find(TaskId{job.id, job.incarnation, rank});
  return task == node->second.end() ? nullptr : &task->second;
}

// What the tasks say of themselves, added up.
void AddObserved(const ClusterState& state, const JobRecord& job, v1::Job& view) {
  int64_t memory = 0;
  for (int rank = 0; rank < static_cast<int>(job.nodes.size()); ++rank) {
    const ObservedTask* task = FindTask(state, job, rank);
    if (task == nullptr) continue;
    memory += task->report.memory();
    if (!task->report.cannot_checkpoint().empty()) {
      absl::StrAppend(view.mutable_methods_note(), view.methods_note().empty() ? "" : "; ",
                      "checkpoint: ", task->report.cannot_checkpoint());
    }
    if (!task->progress) continue;
    v1::JobProgress& progress = *view.mutable_progress();
    progress.set_what(job.state == JobState::kRestoring ? "restore" : "dump");
    progress.set_bytes_done(progress.bytes_done() + task->progress->bytes_done());
    progress.set_bytes_total(progress.bytes_total() + task->progress->bytes_total());
    progress.set_bytes_per_second(progress.bytes_per_second() + task->progress->bytes_per_second());
  }
  view.set_memory(memory);
}

std::string JobName(const ClusterState& state, JobId id) {
  auto it = state.jobs.find(id);
  return it == state.jobs.end() ? "" : it->second.spec.name;
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
  view.set_reason(job.reason);
  for (Method method : kAllMethods) {
    if (job.spec.methods.Has(method) && !job.lost_methods.contains(method)) view.add_methods(ToProto(method));
  }
  for (const auto& [method, why] : job.lost_methods) {
    absl::StrAppend(view.mutable_methods_note(), view.methods_note().empty() ? "" : "; ", ToString(method),
                    ": ", why);
  }
  if (!job.checkpoints.empty()) view.set_checkpoint(job.checkpoints.back().value());
  AddObserved(state, job, view);
  return view;
}

v1::Node ShowNode(const ClusterState& state, const NodeId& id) {
  v1::Node view;
  view.set_name(id.value());
  auto record = state.nodes.find(id);
  const bool cordoned = record != state.nodes.end() && record->second.cordoned;
  auto observed = state.observed_nodes.find(id);
  const bool up = observed != state.observed_nodes.end() && observed->second.connected;
  view.set_state(!up ? "down" : cordoned ? "cordoned" : "up");
  if (observed != state.observed_nodes.end()) {
    const v1::Hello& hello = observed->second.hello;
    const v1::Heartbeat& heartbeat = observed->second.heartbeat;
    *view.mutable_capacity() = hello.capacity();
    view.set_criu(hello.criu());
    view.set_criu_problem(hello.criu_problem());
    view.set_ram_available(heartbeat.ram_available());
    view.set_local_disk_free(heartbeat.local_disk_free());
    view.set_shared_disk_free(heartbeat.shared_disk_free());
    *view.mutable_local() = heartbeat.local();
    *view.mutable_shared() = heartbeat.shared();
    view.set_last_heard_us(ToMicros(observed->second.last_heard));
  }
  Resources used{0, Bytes{0}, 0};
  for (const auto& [job_id, unfinished] : state.unfinished) {
    const JobRecord& job = *unfinished;
    if (std::find(job.nodes.begin(), job.nodes.end(), id) == job.nodes.end()) continue;
    if (UsesSlots(job.state)) {
      view.add_jobs(job_id.value());
      used += job.spec.per_node;
    } else {
      view.add_suspended_jobs(job_id.value());
    }
  }
  *view.mutable_used() = ToProto(used);
  return view;
}

v1::CheckpointInfo ShowCheckpoint(const CheckpointRecord& checkpoint) {
  v1::CheckpointInfo view;
  view.set_id(checkpoint.id.value());
  view.set_job(checkpoint.job.value());
  view.set_tier(ToProto(checkpoint.tier));
  for (const NodeId& node : checkpoint.nodes) view.add_nodes(node.value());
  view.set_bytes(checkpoint.bytes.value);
  view.set_created_us(ToMicros(checkpoint.created));
  view.set_state(checkpoint.state.empty() ? "being made" : checkpoint.state);
  view.set_note(checkpoint.note);
  return view;
}

v1::Plan ShowPlan(const ClusterState& state, const Plan& plan) {
  v1::Plan view = ToProto(plan);
  for (v1::PlanStep& step : *view.mutable_steps()) step.set_job_name(JobName(state, JobId(step.job())));
  for (v1::PlanKeep& keep : *view.mutable_kept()) keep.set_job_name(JobName(state, JobId(keep.job())));
  auto request = state.jobs.find(plan.request);
  if (request != state.jobs.end()) view.set_start_by_us(ToMicros(request->second.spec.start_by));
  return view;
}

v1::Event ShowEvent(const Event& event) {
  v1::Event view;
  view.set_seq(event.seq);
  view.set_at_us(ToMicros(event.at));
  view.set_job(event.job.value());
  view.set_kind(KindOf(event));
  view.set_text(Describe(event));
  return view;
}

}  // namespace siding
