// Jobs whose tasks a cluster manager starts. It decides when and where they run, and the engine follows: what
// the agents report is how it learns of a job, and of each new start. Orders to such a job go the usual way;
// its task leaves, and the cluster manager puts it back into its own queue.
#include "absl/strings/str_cat.h"
#include "controller/engine/impl.h"
#include "controller/wire/wire.h"

namespace siding {
namespace {

// How it may be preempted comes from its agent. A kill would be the end of it: nothing would start it again.
absl::StatusOr<JobSpec> SpecOf(const v1::JobSpec& said) {
  absl::StatusOr<JobSpec> spec = HostedFromProto(said);
  if (!spec.ok()) return spec;
  MethodSet methods;
  for (Method method : kAllMethods) {
    if (method != Method::kKill && spec->methods.Has(method)) methods.Add(method);
  }
  spec->methods = methods;
  // One rank on one node, the script.
  spec->nodes = 1;
  if (spec->per_node == Resources()) spec->per_node.slots = 1;
  if (spec->user.empty()) spec->user = absl::StrCat(spec->uid);
  return spec;
}

}  // namespace

bool IsHosted(const JobRecord& job) { return !job.spec.cluster_manager.empty(); }

// The record of the job, made if it is new. Nothing: the report is not such a job's, or cannot be followed.
JobRecord* Engine::Impl::FindHosted(const v1::TaskReport& report) {
  const JobId id(report.task().job());
  const auto found = state_.jobs.find(id);
  if (found != state_.jobs.end()) {
    JobRecord& job = found->second;
    if (job.spec.cluster_manager != report.spec().cluster_manager()) return nullptr;
    // One that ended may be started again: for us a requeue by the cluster manager itself looks like an end.
    if (!IsTerminal(job.state)) return &job;
    if (report.task().incarnation() <= job.incarnation) return nullptr;
  }
  absl::StatusOr<JobSpec> spec = SpecOf(report.spec());
  if (!spec.ok()) {
    spdlog::warn("job {} of {} is left alone: {}", id.value(), report.spec().cluster_manager(),
                 std::string(spec.status().message()));
    return nullptr;
  }
  Record(id, JobSubmitted{*std::move(spec)});
  return &state_.jobs[id];
}

void Engine::Impl::Follow(const NodeId& node, const v1::TaskReport& report) {
  // Of steps with several tasks the planner has no notion yet: only scripts, which are rank 0, come in.
  if (!report.has_spec() || report.task().rank() != 0 || !IsLive(report.phase())) return;
  JobRecord* job = FindHosted(report);
  if (job == nullptr || report.task().incarnation() <= job->incarnation) return;
  if (HoldsNodes(job->state))
    FallBack(*job, absl::StrCat("started again by ", job->spec.cluster_manager, " on ", node.value()));
  JobMoved move;
  move.event = JobEvent::kPlace;
  move.reason = "started by " + job->spec.cluster_manager;
  move.nodes = {node};
  move.incarnation = report.task().incarnation();
  if (const CheckpointId from(report.checkpoint()); state_.checkpoints.contains(from)) move.checkpoint = from;
  Move(*job, std::move(move));
}

}  // namespace siding
