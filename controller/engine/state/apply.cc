// Apply(): how each event changes the durable state. Nothing else does.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/engine/state/cluster_state.h"
#include "controller/engine/state/trend_count.h"

namespace siding {
namespace {

// What a job has for an exit code whose processes gave it none; `sidingctl wait` exits with it.
constexpr int kRefusedExit = 1;
constexpr int kNotStartedExit = 127;  // as a shell says it of a command that is not there
constexpr int kEndedExit = 128 + 15;  // as of one that SIGTERM has ended

int ExitCodeOf(const JobMoved& end) {
  if (end.event == JobEvent::kSucceeded || end.exit_code != 0) return end.exit_code;
  return end.event == JobEvent::kStartFailed ? kNotStartedExit : kEndedExit;
}

double NodeSeconds(const JobRecord& job, Duration d) { return job.spec.nodes * ToSeconds(d); }

// The job runs (again): the time while it was stopped is lost.
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

// It has made way for a request. A job whose order failed or was withdrawn has not.
bool IsPreemption(const JobRecord& job) {
  return job.current.request != JobId() && !job.current.keep_running;
}

void CountPreemption(JobRecord& job) {
  if (IsPreemption(job)) ++job.preemptions;
}

void TakeTasks(JobRecord& job, const std::vector<NodeId>& nodes, int first_rank) {
  job.first_rank = first_rank;
  job.nodes = nodes;
  // A cluster manager may have given it more than it asked for at least.
  job.spec.nodes = static_cast<int>(nodes.size());
  job.lost_methods.clear();
  job.methods_back_at.clear();
  if (job.refused_image != CheckpointId())
    job.lost_methods[Method::kCheckpoint] =
        absl::StrCat("no restore took its checkpoint ", job.refused_image.value());
}

// In the order in which they were made.
void PutAmongGood(JobRecord& job, const CheckpointId& image) {
  std::vector<CheckpointId> good;
  for (const CheckpointId& id : job.ordered) {
    const bool is_good =
        std::find(job.checkpoints.begin(), job.checkpoints.end(), id) != job.checkpoints.end();
    if (is_good || id == image) good.push_back(id);
  }
  job.checkpoints = std::move(good);
}

void LeaveNodes(JobRecord& job) {
  if (!job.nodes.empty()) job.last_nodes = std::move(job.nodes);
  job.nodes.clear();
  job.running_since = Time{};
  job.in_ram = false;
}

// Earlier saves are not continued from any more: the new incarnation may overwrite their files.
void BackToTheStart(JobRecord& job, Time now, const std::string& why) {
  job.saved_at.reset();
  job.exited.clear();
  job.restore_failures = 0;
  if (!job.first_started || job.state == JobState::kStarting) return;  // nothing of this incarnation has run
  job.begun = now;
  job.begun_after = job.incarnation;
  job.restart_reason = why;
}

// A step of one that the job goes on from where it is, whatever came of it.
bool EndsSave(JobEvent event) {
  switch (event) {
    case JobEvent::kCommit:
    case JobEvent::kContinued:
    case JobEvent::kDumpFailed:
    case JobEvent::kSaveFailed:
    case JobEvent::kThawed:
    case JobEvent::kStaysFrozen:
      return true;
    default:
      return false;
  }
}

class Applier {
 public:
  Applier(DurableState& state, const Event& event) : state_(state), event_(event) {}

  void operator()(const JobSubmitted& e) { Create(e.spec, e.request_key); }

  void operator()(const RequestRefused& e) {
    JobRecord& job = Create(e.spec, e.request_key);
    state_.unfinished.erase(job.id);
    job.state = JobState::kFailed;
    SetEnded(job, event_.at);
    DropOwnContents(job.spec);
    job.exit_code = kRefusedExit;
    job.reason = e.plan.refusal;
    AddPlan(job, e.plan);
  }

  void operator()(const RequestPlanned& e) {
    if (JobRecord* job = Find()) AddPlan(*job, e.plan);
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
    ForgetCosts(*job);
    job->exited.clear();
  }

  void operator()(const MethodLost& e) {
    JobRecord* job = Find();
    if (job == nullptr) return;
    job->lost_methods[e.method] = e.why;
    if (e.back_at == Time{})
      job->methods_back_at.erase(e.method);
    else
      job->methods_back_at[e.method] = e.back_at;
  }

  void operator()(const MethodRegained& e) {
    JobRecord* job = Find();
    if (job == nullptr) return;
    job->lost_methods.erase(e.method);
    job->methods_back_at.erase(e.method);
  }

  void operator()(const CheckpointChanged& e) {
    auto it = state_.checkpoints.find(e.checkpoint);
    if (it == state_.checkpoints.end()) return;
    SetState(it->second, e.state, e.note);
    JobRecord* job = Find();
    if (job == nullptr) return;
    std::erase(job->checkpoints, e.checkpoint);
    job->restore_failures = 0;
    if (e.state == CheckpointState::kGood) PutAmongGood(*job, e.checkpoint);
    if (e.state == CheckpointState::kRefused) {
      job->refused_image = e.checkpoint;
    } else if (job->refused_image == e.checkpoint) {
      // Tried once more, or its owner has deleted it: others may be made again.
      job->refused_image = CheckpointId();
      job->lost_methods.erase(Method::kCheckpoint);
    }
  }

  void operator()(const CopiesChanged& e) {
    const auto found = state_.checkpoints.find(e.checkpoint);
    if (found == state_.checkpoints.end()) return;
    CheckpointRecord& checkpoint = found->second;
    if (e.copies == NodeCopies::kAlone) {
      if (checkpoint.copies != NodeCopies::kUsed) return;
      checkpoint.tier = Tier::kLocal;
      SetCopies(checkpoint, NodeCopies::kNone);
      if (JobRecord* job = Find()) ++job->damaged_checkpoints;
    } else if (e.copies != NodeCopies::kUsed) {
      if (checkpoint.copies != NodeCopies::kNone) SetCopies(checkpoint, e.copies);
    } else if (checkpoint.state == CheckpointState::kGood && checkpoint.tier == Tier::kLocal) {
      checkpoint.tier = Tier::kShared;
      SetCopies(checkpoint, e.copies);
    }
  }

  void operator()(const NodeCordoned& e) { state_.nodes[e.node].cordoned = e.cordoned; }

  void operator()(const NodeLost& e) {
    std::optional<Time>& since = state_.nodes[e.node].lost_since;
    if (!e.lost) since.reset();
    if (e.lost && !since) since = event_.at;
  }

  void operator()(const PolicyChanged&) {}  // it is in a file, not in the journal

  void operator()(const TasksLeft& e) { state_.given_up[e.node].insert(event_.job); }
  void operator()(const TasksGone& e) { NothingIsLeft(e.node, event_.job); }

  void operator()(const BecamePreemptible& e) {
    JobRecord* job = Find();
    if (job == nullptr) return;
    job->preemptible_since = event_.at;
    job->reason = e.why + ": it makes way for others now";
    if (job->spec.methods.empty()) job->spec.methods = {Method::kSuspend, Method::kCheckpoint, Method::kKill};
  }

  void operator()(const JobHeld& e) {
    JobRecord* job = Find();
    if (job != nullptr) job->held = e.held ? std::optional(e) : std::nullopt;
  }

  void operator()(const JobUpdated& e) {
    JobRecord* job = Find();
    if (job == nullptr) return;
    if (e.priority) job->spec.priority = *e.priority;
    if (!e.walltime) return;
    job->spec.walltime = *e.walltime;
    // Others are planned by it: see FromProto() of a spec.
    if (job->spec.kind == JobKind::kOnDemand) job->spec.hold = *e.walltime;
  }

  void operator()(const OrderWaits& e) {
    JobRecord* job = Find();
    if (job == nullptr) return;
    job->waiting_order = e.waits ? std::optional(e) : std::nullopt;
    if (!e.waits) job->reason = Describe(event_);
  }

  void operator()(const Noted& e) {
    JobRecord* job = Find();
    if (job != nullptr && e.rank >= 0) ++job->notes[e.rank];
  }

  void operator()(const JobsForgotten& e) {
    for (const JobId& id : e.jobs) Forget(id);
    state_.last_job = std::max(state_.last_job, e.last_job);
    state_.forgotten = e.tally;
    state_.forgotten_trends = e.trends;
    state_.forgotten_totals = e.totals;
  }

  void operator()(const JournalRestored& e) {
    state_.last_job = std::max(state_.last_job, e.last_job);
    state_.restored_at = event_.at;
    state_.copied_until = e.copied;
    state_.skipped_orders = std::clamp(e.orders, 0, kMostOrdersSkipped);
    // Only the agents know the orders and images since then. Their numbers are not used again.
    for (const auto& [id, job] : state_.unfinished) {
      job->from_copy = true;
      job->order += state_.skipped_orders;
      job->checkpoint_count += state_.skipped_orders;
    }
  }

  void operator()(const JobMoved& e) {
    JobRecord* found = Find();
    if (found == nullptr) return;
    JobRecord& job = *found;
    const auto next = Next(job.state, e.event);
    if (!next) return;
    const CheckpointId under_way = job.current.checkpoint;
    if (e.gpu_state_lost) ++job.gpu_states_lost;
    Move(job, e);
    if (IsCheckpointing(job.state) && !IsCheckpointing(*next)) AbandonCheckpoint(job, under_way);
    job.state = *next;
    if (job.state != JobState::kKilling) job.beginning.reset();
    job.state_since = event_.at;
    job.reason = e.reason;
    if (!EndsSave(e.event)) job.waiting_order.reset();
    // It was leaving its nodes and stays, or has been found there: what runs is not held.
    if (*next == JobState::kRunning) job.held.reset();
    if (IsTerminal(*next)) End(job, e);
    CountWalltime(job);
  }

 private:
  static bool IsCheckpointing(JobState state) {
    return state == JobState::kDumping || state == JobState::kCommitting;
  }

  // It is used up while the job runs, and not while it is frozen or waits.
  void CountWalltime(JobRecord& job) {
    const bool runs = job.running_since != Time{} && !job.stopped_at;
    if (runs == job.runs_since.has_value()) return;
    job.ran = RanFor(job, event_.at);
    job.runs_since = runs ? std::optional(event_.at) : std::nullopt;
  }

  // The job continues without it. After the commit some ranks may have an image, which is deleted.
  void FailCheckpoint(JobRecord& job, const JobMoved& e) {
    if (job.state == JobState::kCommitting && IsPreemption(job)) --job.preemptions;  // it has not left
    SetState(state_.checkpoints[job.current.checkpoint],
             job.state == JobState::kCommitting ? CheckpointState::kDeleted : CheckpointState::kFailed,
             e.reason);
  }

  // The job leaves in the middle of it: no rank's image counts, and images that are in place already are
  // deleted.
  void AbandonCheckpoint(const JobRecord& job, const CheckpointId& id) {
    CheckpointRecord& checkpoint = state_.checkpoints[id];
    if (checkpoint.state != CheckpointState::kBeingMade) return;
    SetState(checkpoint,
             job.state == JobState::kCommitting ? CheckpointState::kDeleted : CheckpointState::kFailed,
             "its job left before all ranks had one");
  }

  void SetState(CheckpointRecord& checkpoint, CheckpointState state, const std::string& note) {
    const auto owner = state_.jobs.find(checkpoint.job);
    if (state == CheckpointState::kDamaged && checkpoint.state != CheckpointState::kDamaged &&
        owner != state_.jobs.end())
      ++owner->second.damaged_checkpoints;
    checkpoint.state = state;
    checkpoint.note = note;
    if (IsUnwanted(state)) {
      state_.unwanted.insert(checkpoint.id);
    } else {
      state_.unwanted.erase(checkpoint.id);
    }
    if (state == CheckpointState::kGone) SetCopies(checkpoint, NodeCopies::kNone);
  }

  void SetCopies(CheckpointRecord& checkpoint, NodeCopies copies) {
    checkpoint.copies = copies;
    if (copies == NodeCopies::kNone) {
      state_.copied.erase(checkpoint.id);
    } else {
      state_.copied.insert(checkpoint.id);
    }
  }

  void AddPlan(JobRecord& job, const Plan& plan) {
    job.plans.push_back(plan);
    job.plans.back().decided = event_.at;
  }

  JobRecord* Find() {
    auto it = state_.jobs.find(event_.job);
    return it == state_.jobs.end() ? nullptr : &it->second;
  }

  JobRecord& Create(const JobSpec& spec, const std::string& request_key) {
    JobRecord& job = state_.jobs[event_.job];
    job.id = event_.job;
    job.request_key = request_key;
    if (!request_key.empty()) state_.keyed[{spec.uid, request_key}] = job.id;
    state_.unfinished[job.id] = &job;
    state_.last_job = std::max(state_.last_job, job.id);
    job.spec = spec;
    job.submitted = job.state_since = job.durable_at = event_.at;
    // One that had ended, and that its cluster manager has put into its queue again: its checkpoints stay.
    job.state = JobState::kPending;
    SetEnded(job, std::nullopt);
    job.exited.clear();
    job.exit_code = 0;
    job.ran = Duration(0);
    job.preemptible_since.reset();
    return job;
  }

  void NothingIsLeft(const NodeId& node, JobId job) {
    const auto given_up = state_.given_up.find(node);
    if (given_up == state_.given_up.end()) return;
    given_up->second.erase(job);
    if (given_up->second.empty()) state_.given_up.erase(given_up);
  }

  void SetEnded(JobRecord& job, std::optional<Time> at) {
    if (job.ended) state_.ended.erase({*job.ended, job.id});
    if (at) state_.ended.insert({*at, job.id});
    job.ended = at;
  }

  void Forget(JobId id) {
    const auto job = state_.jobs.find(id);
    if (job == state_.jobs.end() || !job->second.ended) return;
    SetEnded(job->second, std::nullopt);
    const auto keyed = state_.keyed.find({job->second.spec.uid, job->second.request_key});
    if (keyed != state_.keyed.end() && keyed->second == id) state_.keyed.erase(keyed);
    for (const CheckpointId& checkpoint : job->second.ordered) {
      state_.checkpoints.erase(checkpoint);
      state_.unwanted.erase(checkpoint);
      state_.copied.erase(checkpoint);
    }
    state_.jobs.erase(job);
  }

  void Order(JobRecord& job, const JobMoved& e) {
    job.ordered_as = ++job.order;
    job.ordered_at = event_.at;
    job.current = e;
    if (e.request != JobId()) {
      job.displaced_by = e.request;
      job.last_preempted = event_.at;
    }
  }

  void Move(JobRecord& job, const JobMoved& e) {
    switch (e.event) {
      case JobEvent::kPlace:
        job.incarnation = e.incarnation > 0 ? e.incarnation : job.incarnation + 1;
        // Found where it is, it has had orders that are not recorded.
        job.ordered_as = job.order = job.from_copy ? state_.skipped_orders : 0;
        job.notes.clear();
        job.current = e;
        TakeTasks(job, e.nodes, e.first_rank);
        // One that was found may be found again, in a later life.
        job.from_copy = job.from_copy && e.found;
        job.target.clear();
        GiveUpLeftTasks(job, e.found);
        if (e.checkpoint != CheckpointId())
          job.exited = state_.checkpoints[e.checkpoint].exited;
        else if (!job.spec.cluster_manager.empty())
          job.exited.clear();  // it has started all of them, from what its nodes know
        break;
      case JobEvent::kOrderResume:
        job.in_ram = false;
        [[fallthrough]];
      case JobEvent::kOrderSuspend:
      case JobEvent::kOrderSave:
        Order(job, e);
        break;
      case JobEvent::kOrderKill:
        if (IsBeginning(job.state)) job.beginning = JobRecord::Beginning{job.state, job.current};
        Order(job, e);
        break;
      case JobEvent::kStartGoesOn:
      case JobEvent::kRestoreGoesOn:
        if (job.beginning) job.current = job.beginning->place;
        job.displaced_by = JobId();
        break;
      case JobEvent::kOrderDump:
        Order(job, e);
        BeginCheckpoint(job, e);
        break;
      case JobEvent::kCommit:
        state_.checkpoints[job.current.checkpoint].bytes = e.bytes;
        state_.checkpoints[job.current.checkpoint].new_bytes = e.new_bytes;
        if (!job.current.keep_running && !job.stopped_at) job.stopped_at = event_.at;
        LearnWait(job, e.waited);
        CountPreemption(job);
        break;
      case JobEvent::kStarted:
      case JobEvent::kRestored:
        Begin(job, e);
        break;
      case JobEvent::kFrozen:
        CountPreemption(job);
        job.in_ram = true;
        if (!job.stopped_at) job.stopped_at = event_.at;
        break;
      case JobEvent::kThawed:
        CountStandstill(job, event_.at);
        job.displaced_by = JobId();
        break;
      case JobEvent::kFreezeFailed:
      case JobEvent::kSaveFailed:
        job.displaced_by = JobId();
        break;
      case JobEvent::kDumpFailed:
        if (job.current.keep_running) ++job.checkpoint_failures;
        FailCheckpoint(job, e);
        job.displaced_by = JobId();
        break;
      case JobEvent::kStaysFrozen:
        job.in_ram = true;
        if (e.request != JobId()) job.displaced_by = e.request;
        if (IsCheckpointing(job.state)) FailCheckpoint(job, e);  // else it was to be resumed
        break;
      case JobEvent::kContinued:
        job.state == JobState::kSaving ? FinishSave(job) : FinishCheckpoint(job, e);
        break;
      case JobEvent::kReleased:
        Release(job, e);
        break;
      case JobEvent::kRestoreFailed:
        // Else it was running, or its last image was lost while it waited.
        if (job.state == JobState::kRestoring) ++job.restore_failures;
        FallBack(job, e);
        if (!e.without_save) break;
        job.saved_at.reset();
        job.restore_failures = 0;
        break;
      case JobEvent::kRestartNeeded:
        if (job.state == JobState::kStarting) {
          ++job.start_failures;
        } else {
          ++job.restarts;
        }
        [[fallthrough]];
      case JobEvent::kRequeued:
        if (e.event == JobEvent::kRequeued) {
          CountPreemption(job);
          job.restarts += job.current.from_beginning;
        }
        FallBack(job, e);
        BackToTheStart(job, event_.at, e.reason);
        break;
      case JobEvent::kStartFailed:
      case JobEvent::kCancelled:
      case JobEvent::kSucceeded:
      case JobEvent::kFailed:
        break;
    }
  }

  // It is started again. Its earlier tasks have been seen gone, or an operator has declared it. If it was
  // found started again, it is not known which of them are.
  void GiveUpLeftTasks(JobRecord& job, bool found) {
    for (const NodeId& node : job.left_on) {
      if (found || state_.IsLost(node)) state_.given_up[node].insert(job.id);
    }
    job.left_on.clear();
  }

  // A job may have one made every second for months. While it is restored from one nothing is forgotten.
  void ForgetGone(JobRecord& job) {
    std::vector<CheckpointId> left;
    for (const CheckpointId& id : job.ordered) {
      const auto image = state_.checkpoints.find(id);
      if (image == state_.checkpoints.end()) continue;
      if (image->second.state == CheckpointState::kGone || image->second.state == CheckpointState::kFailed) {
        state_.checkpoints.erase(image);
      } else {
        left.push_back(id);
      }
    }
    job.ordered = std::move(left);
  }

  void BeginCheckpoint(JobRecord& job, const JobMoved& e) {
    ForgetGone(job);
    ++job.checkpoint_count;
    job.ordered.push_back(e.checkpoint);
    CheckpointRecord& checkpoint = state_.checkpoints[e.checkpoint];
    checkpoint.id = e.checkpoint;
    checkpoint.job = job.id;
    checkpoint.incarnation = job.incarnation;
    checkpoint.first_rank = job.first_rank;
    checkpoint.tier = e.tier;
    checkpoint.nodes = job.nodes;
    checkpoint.exited = job.exited;
    checkpoint.created = event_.at;
    checkpoint.ran = RanFor(job, event_.at);
    job.target = e.target;
  }

  void FinishCheckpoint(JobRecord& job, const JobMoved& e) {
    CheckpointRecord& checkpoint = state_.checkpoints[job.current.checkpoint];
    checkpoint.state = CheckpointState::kGood;
    checkpoint.digests = e.digests;
    checkpoint.stopped = e.stopped;
    checkpoint.took = std::max(Duration(0), event_.at - checkpoint.created - job.current.notice);
    checkpoint.exited = job.exited;
    if (e.event == JobEvent::kContinued) LearnCost(job, checkpoint);
    job.checkpoints.push_back(checkpoint.id);
    job.durable_at = checkpoint.created;
    job.restore_failures = 0;
  }

  // Its processes are others now: the first image of them is a whole one.
  static void ForgetCosts(JobRecord& job) {
    job.checkpoint_costs.clear();
    job.checkpoint_failures = 0;
  }

  // Those that have waited long will do so again. An agent of an earlier version does not say it.
  static void LearnWait(JobRecord& job, Duration waited) {
    if (waited > Duration(0)) job.ranks_waited = std::max(waited, job.ranks_waited.value_or(Duration(0)) / 2);
  }

  static void LearnCost(JobRecord& job, const CheckpointRecord& image) {
    // Agents say for how long it stood still if that was not all the time.
    const Duration stop = std::max<Duration>(std::chrono::milliseconds(1),
                                             image.stopped > Duration(0) ? image.stopped : image.took);
    const Bytes written = image.new_bytes > Bytes{} ? image.new_bytes : image.bytes;
    job.checkpoint_failures = 0;
    Learn(job.checkpoint_costs,
          {image.tier, stop, std::max(image.took, stop), written, image.stopped > Duration(0)});
  }

  // The program wrote it after it was told to, so it holds at least what was done by then.
  void FinishSave(JobRecord& job) {
    job.saved_at = job.durable_at = job.state_since;
    job.saved_ran = RanFor(job, job.state_since);
    job.restore_failures = 0;
  }

  void Begin(JobRecord& job, const JobMoved& e) {
    const Time started = e.started == Time{} ? event_.at : e.started;
    CountStandstill(job, started);
    job.running_since = started;
    job.runs_since = started;
    job.ran = e.event == JobEvent::kStarted    ? Duration(0)
              : e.checkpoint != CheckpointId() ? state_.checkpoints[e.checkpoint].ran
                                               : job.saved_ran;
    if (!job.first_started) job.first_started = started;
    // Whatever it continues from, only what it does from now on may be lost.
    job.durable_at = started;
    ForgetCosts(job);
    job.displaced_by = JobId();
    job.start_failures = job.restore_failures = 0;
  }

  void Release(JobRecord& job, const JobMoved& e) {
    if (job.state == JobState::kCommitting) {
      FinishCheckpoint(job, e);
    } else {
      CountPreemption(job);
    }
    if (job.state == JobState::kSaving) FinishSave(job);
    if (job.state == JobState::kKilling) {
      CountRepeatedWork(job, event_.at);
      job.left_on = e.nodes;
    }
    if (!job.stopped_at) job.stopped_at = event_.at;
    LeaveNodes(job);
  }

  void FallBack(JobRecord& job, const JobMoved& e) {
    CountRepeatedWork(job, event_.at);
    // A parked job that has to start from the beginning has saved nothing new.
    if (HoldsNodes(job.state)) job.left_on = e.nodes;
    // It continues from a save of a time when a rank that has ended since was still running: that rank is
    // needed again. A checkpoint itself names the ranks that had ended.
    if (job.saved_at && job.last_exit > *job.saved_at) job.exited.clear();
    LeaveNodes(job);
  }

  // A cluster manager may start its jobs again.
  static void DropOwnContents(JobSpec& spec) {
    if (spec.cluster_manager.empty()) DropAllButCommand(spec);
  }

  void End(JobRecord& job, const JobMoved& e) {
    state_.unfinished.erase(job.id);
    CountStandstill(job, event_.at);
    SetEnded(job, event_.at);
    DropOwnContents(job.spec);
    job.exit_code = ExitCodeOf(e);
    job.displaced_by = JobId();
    job.held.reset();
    LeaveNodes(job);
  }

  DurableState& state_;
  const Event& event_;
};

}  // namespace

bool IsRequest(const JobRecord& job) { return job.spec.kind == JobKind::kOnDemand && !job.preemptible_since; }

std::string WhyUnknown(const DurableState& state, JobId job) {
  return absl::StrCat(
      "there is no job ", job.value(),
      job <= state.last_job ? "; jobs that ended long ago are forgotten, and some numbers are left out" : "");
}

std::string WhyFaulty(const ObservedNode& node) {
  if (!node.problem.empty()) return node.problem;
  if (!node.starts.out) return "";
  return absl::StrCat("starts fail there, the last that of job ", node.starts.last.value(),
                      "; one is tried at ", FormatTime(node.starts.until));
}

Duration RanFor(const JobRecord& job, Time now) {
  return job.ran + (job.runs_since ? std::max(Duration(0), now - *job.runs_since) : Duration(0));
}

std::vector<CheckpointId> UsableImages(const DurableState& state, const JobRecord& job) {
  std::vector<CheckpointId> usable = job.checkpoints;
  std::erase_if(usable, [&](const CheckpointId& id) {
    return state.checkpoints.at(id).incarnation <= job.begun_after;
  });
  return usable;
}

std::vector<CheckpointId> RefusedImagesOf(const DurableState& state, const JobRecord& job) {
  std::vector<CheckpointId> refused;
  for (const CheckpointId& id : job.ordered) {
    const CheckpointRecord& image = state.checkpoints.at(id);
    if (image.state == CheckpointState::kRefused && image.incarnation > job.begun_after)
      refused.push_back(id);
  }
  return refused;
}

const CheckpointRecord* NewestImage(const DurableState& state, const JobRecord& job) {
  if (job.checkpoints.empty()) return nullptr;
  const CheckpointRecord& newest = state.checkpoints.at(job.checkpoints.back());
  return newest.incarnation > job.begun_after ? &newest : nullptr;
}

Resumption ResumptionOf(const DurableState& state, const JobRecord& job) {
  const CheckpointRecord* const newest = NewestImage(state, job);
  if (newest == nullptr) return job.saved_at ? Resumption::kOwnSave : Resumption::kBeginning;
  return job.saved_at && *job.saved_at >= newest->created ? Resumption::kOwnSave : Resumption::kCheckpoint;
}

void Apply(DurableState& state, const Event& event) {
  state.last_seq = std::max(state.last_seq, event.seq);
  TrendCount count(state, event);
  std::visit(Applier(state, event), event.body);
  const auto job = state.jobs.find(event.job);
  if (job == state.jobs.end()) return;
  count.Record(state, job->second);
  state.index.Update(job->second);
}

}  // namespace siding
