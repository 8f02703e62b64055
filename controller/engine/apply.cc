// Apply(): how each event changes the durable state. Nothing else does.
#include <algorithm>

#include "controller/engine/state.h"

namespace siding {
namespace {

double NodeSeconds(const JobRecord& job, Duration d) { return job.spec.nodes * ToSeconds(d); }

// The job runs (again): what it stood still for is lost.
void CountStandstill(JobRecord& job, Time now) {
  if (job.stopped_at) job.lost_node_seconds += NodeSeconds(job, now - *job.stopped_at);
  job.stopped_at.reset();
}

// The job fell back: what it did since its last durable point has to be done again.
void CountRepeatedWork(JobRecord& job, Time now) {
  if (job.running_since == Time{}) return;
  const Time until = job.stopped_at.value_or(now);
  job.lost_node_seconds += NodeSeconds(job, std::max(Duration(0), until - job.durable_at));
  job.stopped_at = until;
}

void TakeTasks(JobRecord& job, const std::vector<NodeId>& nodes, int first_rank) {
  job.first_rank = first_rank;
  job.nodes = nodes;
  // A cluster manager may have given it more than it asked for at least.
  job.spec.nodes = static_cast<int>(nodes.size());
  job.lost_methods.clear();
}

void LeaveNodes(JobRecord& job) {
  if (!job.nodes.empty()) job.last_nodes = std::move(job.nodes);
  job.nodes.clear();
  job.running_since = Time{};
  job.in_ram = false;
}

void BackToTheStart(JobRecord& job) {
  job.saved_at.reset();
  job.exited.clear();
  job.restore_failures = 0;
}

class Applier {
 public:
  Applier(ClusterState& state, const Event& event) : state_(state), event_(event) {}

  void operator()(const JobSubmitted& e) { Create(e.spec).request_key = e.request_key; }

  void operator()(const RequestRefused& e) {
    JobRecord& job = Create(e.spec);
    job.request_key = e.request_key;
    state_.unfinished.erase(job.id);
    job.state = JobState::kFailed;
    job.ended = event_.at;
    job.exit_code = -1;
    job.reason = e.plan.refusal;
    job.plans.push_back(e.plan);
  }

  void operator()(const RequestPlanned& e) {
    if (JobRecord* job = Find()) job->plans.push_back(e.plan);
  }

  void operator()(const RankExited& e) {
    JobRecord* job = Find();
    if (job == nullptr) return;
    job->exited[e.rank] = e.exit_code;
    job->last_exit = event_.at;
  }

  void operator()(const TasksChanged& e) {
    JobRecord* job = Find();
    if (job == nullptr || !HoldsNodes(job->state)) return;
    TakeTasks(*job, e.nodes, e.first_rank);
    job->exited.clear();
  }

  void operator()(const MethodLost& e) {
    if (JobRecord* job = Find()) job->lost_methods[e.method] = e.why;
  }

  void operator()(const CheckpointChanged& e) {
    auto it = state_.checkpoints.find(e.checkpoint);
    if (it == state_.checkpoints.end()) return;
    it->second.state = e.state;
    it->second.note = e.note;
    if (JobRecord* job = Find()) {
      std::erase(job->checkpoints, e.checkpoint);
      job->restore_failures = 0;
    }
  }

  void operator()(const NodeCordoned& e) { state_.nodes[e.node].cordoned = e.cordoned; }

  void operator()(const Noted&) {}

  void operator()(const JobMoved& e) {
    JobRecord* found = Find();
    if (found == nullptr) return;
    JobRecord& job = *found;
    const auto next = Next(job.state, e.event);
    if (!next) return;
    Move(job, e);
    job.state = *next;
    job.state_since = event_.at;
    job.reason = e.reason;
    if (IsTerminal(*next)) End(job, e);
  }

 private:
  JobRecord* Find() {
    auto it = state_.jobs.find(event_.job);
    return it == state_.jobs.end() ? nullptr : &it->second;
  }

  JobRecord& Create(const JobSpec& spec) {
    JobRecord& job = state_.jobs[event_.job];
    job.id = event_.job;
    state_.unfinished[job.id] = &job;
    job.spec = spec;
    job.submitted = job.state_since = job.durable_at = event_.at;
    // One that had ended, and that its cluster manager has put into its queue again: its checkpoints stay.
    job.state = JobState::kPending;
    job.ended.reset();
    job.exited.clear();
    job.exit_code = 0;
    return job;
  }

  void Order(JobRecord& job, const JobMoved& e) {
    ++job.order;
    job.current = e;
    if (e.request != JobId()) {
      job.displaced_by = e.request;
      ++job.preemptions;
      job.last_preempted = event_.at;
    }
  }

  void Move(JobRecord& job, const JobMoved& e) {
    switch (e.event) {
      case JobEvent::kPlace:
        job.incarnation = e.incarnation > 0 ? e.incarnation : job.incarnation + 1;
        job.order = 0;
        job.current = e;
        TakeTasks(job, e.nodes, e.first_rank);
        job.target.clear();
        if (e.checkpoint != CheckpointId()) job.exited = state_.checkpoints[e.checkpoint].exited;
        break;
      case JobEvent::kOrderResume:
        job.in_ram = false;
        [[fallthrough]];
      case JobEvent::kOrderSuspend:
      case JobEvent::kOrderSave:
      case JobEvent::kOrderKill:
        Order(job, e);
        break;
      case JobEvent::kOrderDump:
        Order(job, e);
        BeginCheckpoint(job, e);
        break;
      case JobEvent::kCommit:
        state_.checkpoints[job.current.checkpoint].bytes = e.bytes;
        if (!job.current.keep_running && !job.stopped_at) job.stopped_at = event_.at;
        break;
      case JobEvent::kStarted:
      case JobEvent::kRestored:
        Begin(job, e);
        break;
      case JobEvent::kFrozen:
        job.in_ram = true;
        if (!job.stopped_at) job.stopped_at = event_.at;
        break;
      case JobEvent::kThawed:
        CountStandstill(job, event_.at);
        job.displaced_by = JobId();
        break;
      case JobEvent::kFreezeFailed:
        job.displaced_by = JobId();
        break;
      case JobEvent::kDumpFailed:
        state_.checkpoints[job.current.checkpoint].state = "failed";
        state_.checkpoints[job.current.checkpoint].note = e.reason;
        job.displaced_by = JobId();
        break;
      case JobEvent::kStaysFrozen:
        state_.checkpoints[job.current.checkpoint].state = "failed";
        state_.checkpoints[job.current.checkpoint].note = e.reason;
        break;
      case JobEvent::kSaveFailed:
        job.displaced_by = JobId();
        break;
      case JobEvent::kContinued:
        job.state == JobState::kSaving ? FinishSave(job) : FinishCheckpoint(job);
        break;
      case JobEvent::kReleased:
        Release(job);
        break;
      case JobEvent::kRestoreFailed:
        ++job.restore_failures;
        FallBack(job);
        break;
      case JobEvent::kRestartNeeded:
      case JobEvent::kRequeued:
        FallBack(job);
        BackToTheStart(job);
        break;
      case JobEvent::kStartFailed:
      case JobEvent::kCancelled:
      case JobEvent::kSucceeded:
      case JobEvent::kFailed:
        break;
    }
  }

  void BeginCheckpoint(JobRecord& job, const JobMoved& e) {
    ++job.checkpoint_count;
    CheckpointRecord& checkpoint = state_.checkpoints[e.checkpoint];
    checkpoint.id = e.checkpoint;
    checkpoint.job = job.id;
    checkpoint.incarnation = job.incarnation;
    checkpoint.first_rank = job.first_rank;
    checkpoint.tier = e.tier;
    checkpoint.nodes = job.nodes;
    checkpoint.exited = job.exited;
    checkpoint.created = event_.at;
    job.target = e.target;
  }

  void FinishCheckpoint(JobRecord& job) {
    CheckpointRecord& checkpoint = state_.checkpoints[job.current.checkpoint];
    checkpoint.state = "good";
    checkpoint.exited = job.exited;
    job.checkpoints.push_back(checkpoint.id);
    job.durable_at = checkpoint.created;
    job.restore_failures = 0;
  }

  // The program wrote it after it was told to, so it holds at least what was done by then.
  void FinishSave(JobRecord& job) {
    job.saved_at = job.durable_at = job.state_since;
    job.restore_failures = 0;
  }

  void Begin(JobRecord& job, const JobMoved& e) {
    const Time started = e.started == Time{} ? event_.at : e.started;
    CountStandstill(job, started);
    job.running_since = started;
    if (!job.first_started) job.first_started = started;
    // Whatever it goes on from, what may be lost is what it does from now on.
    job.durable_at = started;
    job.displaced_by = JobId();
    job.restore_failures = 0;
  }

  void Release(JobRecord& job) {
    if (job.state == JobState::kCommitting) FinishCheckpoint(job);
    if (job.state == JobState::kSaving) FinishSave(job);
    if (job.state == JobState::kKilling) CountRepeatedWork(job, event_.at);
    if (!job.stopped_at) job.stopped_at = event_.at;
    LeaveNodes(job);
  }

  void FallBack(JobRecord& job) {
    CountRepeatedWork(job, event_.at);
    LeaveNodes(job);
  }

  void End(JobRecord& job, const JobMoved& e) {
    state_.unfinished.erase(job.id);
    CountStandstill(job, event_.at);
    job.ended = event_.at;
    job.exit_code = e.exit_code;
    job.displaced_by = JobId();
    LeaveNodes(job);
  }

  ClusterState& state_;
  const Event& event_;
};

}  // namespace

Resumption ResumptionOf(const ClusterState& state, const JobRecord& job) {
  if (job.checkpoints.empty()) return job.saved_at ? Resumption::kOwnSave : Resumption::kBeginning;
  const Time newest = state.checkpoints.at(job.checkpoints.back()).created;
  return job.saved_at && *job.saved_at >= newest ? Resumption::kOwnSave : Resumption::kCheckpoint;
}

void Apply(ClusterState& state, const Event& event) {
  state.last_seq = std::max(state.last_seq, event.seq);
  std::visit(Applier(state, event), event.body);
}

}  // namespace siding
