#include "controller/metrics/look.h"

#include <algorithm>

#include "controller/engine/state/predicates.h"
#include "controller/engine/state/trend_count.h"

namespace siding {
namespace {

Outlook OutlookOf(const JobRecord& request, Time now) {
  if (now > request.spec.start_by) return Outlook::kLate;
  const Plan& plan = request.plans.back();
  return plan.feasible && plan.predicted_start <= request.spec.start_by ? Outlook::kInTime : Outlook::kAtRisk;
}

// What a program was promised for its own end is not the state's: a notice, or time to save itself.
Time SinceOf(const JobRecord& job) {
  switch (job.state) {
    case JobState::kSuspending:
    case JobState::kDumping:
      return job.state_since + job.current.notice;
    case JobState::kSaving:
      return job.state_since + (job.spec.app ? job.spec.app->grace : Duration(0));
    case JobState::kKilling:
      return job.state_since + job.spec.kill_grace;
    default:
      return job.state_since;
  }
}

void LookAtUnfinished(const ClusterState& state, const JobRecord& job, Look& look) {
  Look::OfState& of_state = look.jobs[static_cast<size_t>(job.state)];
  if (job.held) {
    ++look.held;
  } else if (const Time since = SinceOf(job); of_state.oldest == Time{} || since < of_state.oldest) {
    of_state.oldest = since;
  }
  look.most_preemptions = std::max(look.most_preemptions, job.preemptions);
  if (IsRequest(job) && !job.first_started && !job.plans.empty()) ++look.outlooks[OutlookOf(job, look.now)];
  const bool parked = job.state == JobState::kParked;
  const bool waits_for_a_word = parked && ResumptionOf(state, job) == Resumption::kBeginning;
  look.unstarted += waits_for_a_word;
  look.unrestored +=
      (parked || job.state == JobState::kRestoring) && job.restore_failures > 0 && !waits_for_a_word;
}

void LookAtJobs(const ClusterState& state, Look& look) {
  look.tally = state.forgotten;
  look.totals = TotalsOf(state);
  for (const auto& [id, job] : state.jobs) {
    ++look.jobs[static_cast<size_t>(job.state)].jobs;
    AddTo(look.tally, job);
  }
  for (const auto& [id, job] : state.unfinished) LookAtUnfinished(state, *job, look);
}

void LookAtNode(const ClusterState& state, const NodeId& id, const ObservedNode& node, Look& look) {
  const v1::Heartbeat& said = node.heartbeat;
  if (state.IsLost(id)) return;
  if (said.has_local())
    look.by_node[id] = {node.connected, said.scrubbed_bytes(), said.copied_bytes(), said.local_disk_free()};
  ++look.nodes[!node.connected ? "down" : node.silent ? "silent" : node.faulty ? "faulty" : "up"];
  if (said.certificate_ends_us() != 0)
    look.certificate_ends["node/" + id.value()] = FromMicros(said.certificate_ends_us());
  const bool has_shared = said.shared_disk_free() > 0 || said.shared().dump().bytes_per_second() > 0;
  if (node.connected && has_shared)
    look.shared_free = std::max(look.shared_free.value_or(0), said.shared_disk_free());
}

void LookAtNodes(const ClusterState& state, Look& look) {
  look.nodes = {{"up", 0}, {"down", 0}, {"silent", 0}, {"lost", 0}, {"faulty", 0}};
  for (const auto& [id, node] : state.observed_nodes) LookAtNode(state, id, node, look);
  for (const auto& [id, node] : state.nodes) {
    look.nodes["lost"] += node.lost_since.has_value();
    look.cordoned += node.cordoned;
  }
}

void LookAtCheckpoints(const ClusterState& state, Look& look) {
  for (const auto& [id, checkpoint] : state.checkpoints) {
    ++look.checkpoints[static_cast<size_t>(checkpoint.state)];
    if (checkpoint.state != CheckpointState::kGood) continue;
    const Bytes written = checkpoint.new_bytes > Bytes{} ? checkpoint.new_bytes : checkpoint.bytes;
    look.image_bytes[checkpoint.tier] += written.value;
  }
}

}  // namespace

Look TakeLook(const MetricSources& sources) {
  Look look;
  look.leads = true;
  const Engine& engine = sources.engine;
  look.now = engine.Now();
  const bool has_manager = !engine.ClusterManager().empty();
  engine.Read([&](const ClusterState& state) {
    look.events = state.last_seq;
    LookAtJobs(state, look);
    LookAtNodes(state, look);
    LookAtCheckpoints(state, look);
    if (has_manager) look.manager_answers = state.queue.seen && state.queue.answers;
  });
  if (const auto ends = engine.certificate_end()) look.certificate_ends["controller"] = *ends;
  look.journal_can_be_written = engine.JournalCanBeWritten();
  look.policy_failures = engine.policy_failures();
  look.quota_refusals = engine.quota_refusals();
  look.journal_bytes = sources.journal_bytes();
  look.lost_messages = sources.lost_messages();
  look.calls = sources.calls();
  if (sources.told) look.told = sources.told();
  return look;
}

}  // namespace siding
