#include "controller/engine/observe/job_observer.h"

#include <algorithm>
#include <csignal>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"

namespace siding {
namespace {

// Attempts at a dump that failed for a reason that may pass, such as a process that ended in the middle of
// it.
constexpr int kDumpAttempts = 2;
// A method that has failed is tried again after this.
constexpr Duration kMethodPause = std::chrono::minutes(10);
// What a disruption budget forbids may be allowed soon.
constexpr Duration kRefusedPause = std::chrono::minutes(1);
// Attempts to dump a rank whose peers have left. All that is lost otherwise hangs on it; see DumpAgainAt() in
// act/job_orders.cc.
constexpr int kLastRankAttempts = 10;

bool WasOutOfMemory(const v1::TaskReport& report) {
  return report.out_of_memory() > 0 || report.killed_for_memory() > 0;
}

// What a shell would say of it. A program of which the kernel has ended processes for lack of memory has not
// done its work, whatever its script makes of that: it ends as one that was ended like them.
int EndCodeOf(const v1::TaskReport& report) {
  const int code = report.exit_signal() != 0 ? 128 + report.exit_signal() : report.exit_code();
  return code == 0 && WasOutOfMemory(report) ? 128 + SIGKILL : code;
}

std::string HowItFailed(const v1::TaskReport& report, const std::string& where, int code) {
  if (report.out_of_memory() > 0)
    return absl::StrCat(where, " was out of memory: used all of its ",
                        FormatBytes(Bytes{report.out_of_memory()}));
  if (const int64_t killed = report.killed_for_memory(); killed > 0)
    return absl::StrCat(where, " was out of memory: the kernel ended ", killed,
                        killed == 1 ? " process" : " processes", " of it, as the node had none left");
  if (report.exit_signal() != 0) return absl::StrCat(where, " was ended by signal ", report.exit_signal());
  return absl::StrCat(where, " exited with ", code);
}

bool IsInImage(const CommitView& commit, int rank) {
  return std::find(commit.ended_in_image.begin(), commit.ended_in_image.end(), rank) !=
         commit.ended_in_image.end();
}

}  // namespace

bool JobObserver::Observe(const JobRecord& job) {
  if (ObserveCopied(job) || ObserveLostImages(job) || ObserveReturnedNodes(job)) return true;
  if (!HoldsNodes(job.state) || IsKnownFromQueueOnly(job)) return false;
  if (IsBeginning(job.state) && ObserveStart(job)) return true;
  if (ObserveExits(job)) return true;
  if (job.state != JobState::kKilling && (ObserveLostTasks(job) || ObserveGpuState(job))) return true;
  switch (job.state) {
    case JobState::kRunning:
      return ObserveFrozen(job);
    case JobState::kResuming:
      return ObserveFrozen(job) || ObserveFreeze(job);
    case JobState::kSuspending:
      return ObserveFreeze(job);
    case JobState::kDumping:
      return ObserveDump(job);
    case JobState::kCommitting:
      return ObserveCommit(job);
    case JobState::kSaving:
      return ObserveSave(job);
    case JobState::kKilling:
      return ObserveKill(job);
    default:
      return false;
  }
}

// All of its ranks' images are in shared storage: before it matters that a node with one of them is lost.
bool JobObserver::ObserveCopied(const JobRecord& job) {
  for (const CheckpointId& id : job.checkpoints) {
    const CheckpointRecord& checkpoint = state_.checkpoints.at(id);
    const auto copied = observed_.copied_ranks.find(id);
    if (copied == observed_.copied_ranks.end() || checkpoint.tier != Tier::kLocal) continue;
    const size_t ranks = checkpoint.nodes.size() - checkpoint.exited.size();
    if (copied->second.size() < ranks) continue;
    observed_.copied_ranks.erase(copied);
    observed_.doubted_copies.erase(id);
    recorder_.Record(job.id, CopiesChanged{id, NodeCopies::kUsed, {}});
    return true;
  }
  return false;
}

// If one image on a node's own disk is lost, its whole checkpoint is useless.
bool JobObserver::ObserveLostImages(const JobRecord& job) {
  for (const CheckpointId& id : job.checkpoints) {
    const CheckpointRecord& checkpoint = state_.checkpoints.at(id);
    if (checkpoint.tier != Tier::kLocal) continue;
    for (int rank = 0; rank < static_cast<int>(checkpoint.nodes.size()); ++rank) {
      const NodeId& node = checkpoint.nodes[rank];
      if (checkpoint.exited.contains(rank) || !state_.IsLost(node)) continue;
      const std::string why = absl::StrCat("rank ", rank, " lies on node ", node.value(), ", which is lost");
      // If the node comes back, its image is deleted.
      recorder_.Record(job.id, CheckpointChanged{id, CheckpointState::kDeleted, why});
      if (job.state == JobState::kParked && ResumptionOf(state_, job) == Resumption::kBeginning)
        recovery_.FallBack(job, why);
      return true;
    }
  }
  return false;
}

// The node's list of tasks is complete, and newer than any order from before it was lost.
bool JobObserver::ObserveReturnedNodes(const JobRecord& job) {
  for (const auto& [node, jobs] : state_.given_up) {
    if (!jobs.contains(job.id) || state_.IsLost(node) || !cluster_.IsConnected(node)) continue;
    const auto& tasks = state_.observed_tasks.at(node);
    const bool left = std::any_of(tasks.lower_bound(TaskId{job.id, 0, 0}),
                                  tasks.lower_bound(TaskId{job.id, job.incarnation, 0}),
                                  [](const auto& task) { return IsLive(task.second.report.phase()); });
    if (left) continue;
    recorder_.Record(job.id, TasksGone{node});
    return true;
  }
  return false;
}

// Of a job of siding's own that keeps its connections: nothing will come of this start. Empty: it may.
std::string JobObserver::WhyNotInItsNetwork(const JobRecord& job, int rank, const TaskSeen& seen) const {
  // Others end such a rank themselves.
  if (!job.spec.keep_connections || !OwnershipOf(job.spec).siding_starts) return "";
  const auto observed = state_.observed_nodes.find(job.nodes[rank]);
  const bool is_able = observed == state_.observed_nodes.end() || !observed->second.connected ||
                       observed->second.hello.keeps_connections();
  const bool is_not_in_it = seen.phase() == v1::RUNNING && !seen.report.has_endpoint();
  if (is_not_in_it || (!is_able && !seen.known)) return "no connections are kept on this node";
  return seen.report.joined() ? "" : seen.report.not_joined();
}

bool JobObserver::ObserveStart(const JobRecord& job) {
  Time started{};
  bool all = true;
  for (int rank : cluster_.LiveRanks(job)) {
    const TaskSeen seen = cluster_.Seen(job, rank);
    if (seen.phase() == v1::LAUNCH_FAILED) {
      faults_.OnFailedStart(job);
      recovery_.StartFailed(job, rank, seen.report);
      return true;
    }
    if (seen.phase() == v1::RESTORE_FAILED) {
      const CheckpointId image = job.current.checkpoint;
      recovery_.RestoreFailed(job, rank, seen.report);
      std::erase_if(observed_.doubted_copies, [&](const auto& id) { return !state_.copied.contains(id); });
      if (state_.copied.contains(image)) observed_.doubted_copies.insert(image);
      return true;
    }
    if (const std::string why = WhyNotInItsNetwork(job, rank, seen); !why.empty()) {
      v1::TaskReport failed = seen.report;
      failed.set_error(why);
      failed.set_node_problem(true);
      faults_.OnFailedStart(job);
      if (job.state == JobState::kRestoring && job.current.checkpoint != CheckpointId())
        recovery_.RestoreFailed(job, rank, failed);
      else
        recovery_.StartFailed(job, rank, failed);
      return true;
    }
    // A rank that has exited already has run, too; one that was found where it is may be frozen.
    all &= seen.phase() == v1::RUNNING || seen.phase() == v1::EXITED || seen.phase() == v1::SUSPENDED;
    // Until then what it sends to its peers goes nowhere.
    all &= !seen.report.has_endpoint() || seen.phase() != v1::RUNNING || seen.report.joined();
    started = std::max(started, FromMicros(seen.report.started_us()));
  }
  if (!all) return false;
  JobMoved move = Moved(job.state == JobState::kStarting ? JobEvent::kStarted : JobEvent::kRestored);
  move.checkpoint = job.current.checkpoint;
  // By the nodes' clocks, which may be hours off: used only if it can be true. A task of a cluster manager
  // starts before the controller knows of it.
  const Time now = clock_.Now();
  const bool can_be = started <= now && (started >= job.state_since || !OwnershipOf(job.spec).siding_starts);
  move.started = can_be ? started : now;
  recovery_.ForgetRetries(job.id);
  faults_.OnStarted(job);
  recorder_.Move(job, std::move(move));
  return true;
}

// By an order to kill it that was withdrawn since. It counts as carried out, and not as a loss.
bool JobObserver::WasEndedUnheard(const JobRecord& job, const v1::TaskReport& report) const {
  return OwnershipOf(job.spec).siding_ends && !report.own_end() && job.state == JobState::kRunning &&
         job.current.event == JobEvent::kOrderKill && !job.current.for_good && MayStartOver(job) &&
         ResumptionOf(state_, job) == Resumption::kBeginning;
}

// Ranks that ended by themselves, even if just before they would have been ended. A job has succeeded when
// all of them exited with 0, and failed when one did not. The other ranks are ended then: they would wait for
// it for ever.
bool JobObserver::ObserveExits(const JobRecord& job) {
  std::optional<CommitView> commit;
  for (int rank : cluster_.LiveRanks(job)) {
    const TaskSeen seen = cluster_.Seen(job, rank);
    if (seen.phase() != v1::EXITED) continue;
    if (job.state == JobState::kKilling && !seen.report.own_end()) continue;
    if (job.state == JobState::kCommitting && !commit) commit = cluster_.CommitOf(job);
    const bool counts = commit && !job.current.keep_running && HasCommitted(job, seen.report);
    if (counts && (IsInImage(*commit, rank) || !commit->all_known)) continue;
    if (WasEndedUnheard(job, seen.report)) {
      recovery_.StartOver(job,
                          absl::StrCat(On(job, rank), " was ended for a request before that was withdrawn"));
      return true;
    }
    if (OwnershipOf(job.spec).siding_ends && !seen.report.own_end()) {
      recovery_.FallBack(job,
                         absl::StrCat(On(job, rank), " has been ended by an order that is not recorded"));
      return true;
    }
    if (tasks_.BackToScript(job)) return true;
    if (manager_.ContinuesInQueue(job)) return false;
    const int code = EndCodeOf(seen.report);
    // While it waited to be dumped again it ran alone, and its peers did not answer.
    if (code != 0 && commit && commit->are_apart) {
      recovery_.FallBack(job, absl::StrCat(HowItFailed(seen.report, On(job, rank), code),
                                           " while its peers had been saved already"));
      return true;
    }
    recorder_.Record(job.id, RankExited{rank, code});
    if (code == 0 && !cluster_.LiveRanks(job).empty()) return true;
    JobMoved move = Moved(code == 0 ? JobEvent::kSucceeded : JobEvent::kFailed);
    move.exit_code = code;
    if (code != 0) {
      move.reason = HowItFailed(seen.report, On(job, rank), code);
    }
    recorder_.Move(job, std::move(move));
    return true;
  }
  return false;
}

// Ranks whose processes are gone without an order, on a node that is connected, or lost.
bool JobObserver::ObserveLostTasks(const JobRecord& job) {
  for (int rank : cluster_.LiveRanks(job)) {
    const TaskSeen seen = cluster_.Seen(job, rank);
    if (!seen.connected) continue;
    const bool expected = cluster_.StartIsOnItsWay(job);
    const bool parked_early = seen.phase() == v1::CHECKPOINTED || seen.phase() == v1::SAVED;
    // An older order may have been carried out after a copy of the journal was made.
    const bool gone_as_ordered =
        parked_early &&
        ((job.state == JobState::kCommitting && !job.current.keep_running) ||
         (job.state == JobState::kSaving && (!job.current.keep_running || cluster_.HaveAllSaved(job))));
    const bool lost =
        seen.phase() == v1::LOST || (!seen.known && !expected) || (parked_early && !gone_as_ordered);
    if (!lost) continue;
    const bool commits = job.state == JobState::kCommitting && !job.current.keep_running;
    if (commits && HasCommitted(job, seen.report) && IsInImage(cluster_.CommitOf(job), rank)) continue;
    recovery_.FallBack(job, state_.IsLost(job.nodes[rank])
                                ? absl::StrCat(On(job, rank), " is lost with its node")
                                : absl::StrCat(On(job, rank), " is gone"));
    return true;
  }
  return false;
}

// A rank's GPU state cannot be put back. The rank stays frozen, or runs without that state, and its peers
// wait for it. So all ranks are ended, and the job continues from its newest image. Without an image it
// fails, unless it may be killed.
bool JobObserver::ObserveGpuState(const JobRecord& job) {
  if (IsBeginning(job.state)) return false;  // a restore that failed in this way is reported as failed
  for (int rank : cluster_.LiveRanks(job)) {
    const TaskSeen seen = cluster_.Seen(job, rank);
    if (!seen.known || !IsLive(seen.phase()) || seen.report.gpu_state_lost().empty()) continue;
    const bool has_image = ResumptionOf(state_, job) != Resumption::kBeginning;
    const bool goes_on = has_image || job.spec.methods.Has(Method::kKill);
    JobMoved move =
        Moved(goes_on || !OwnershipOf(job.spec).siding_ends ? JobEvent::kOrderKill : JobEvent::kFailed);
    move.reason = absl::StrCat(On(job, rank), ": ", seen.report.gpu_state_lost(),
                               has_image ? "; it goes on from its newest image"
                               : goes_on ? "; it starts from its beginning"
                                         : "; it has no image, and may not be started from its beginning");
    move.for_good = !goes_on;
    move.gpu_state_lost = true;
    if (move.event == JobEvent::kFailed) move.exit_code = 1;
    recorder_.Move(job, std::move(move));
    return true;
  }
  return false;
}

// Recorded as running, and found frozen: since the journal was copied it has made way for another job, which
// may have its place. What is done is recorded, so that it is not taken for frozen while it is thawed.
bool JobObserver::ObserveFrozen(const JobRecord& job) {
  if (!OwnershipOf(job.spec).siding_makes_room || (job.state == JobState::kResuming && !job.from_copy))
    return false;
  const std::vector<int> ranks = cluster_.LiveRanks(job);
  const bool frozen = std::any_of(ranks.begin(), ranks.end(), [&](int rank) {
    return cluster_.Seen(job, rank).phase() == v1::SUSPENDED;
  });
  if (!frozen) return false;
  agenda_.next_tick.insert(job.id);  // unless something follows now
  if (startup_.IsCatchingUp(clock_.Now())) return false;
  JobMoved move;
  move.reason = "it is frozen, which nobody has recorded";
  for (const auto& [node, room] : accounts_.RoomBesideOthers(job)) {
    if (CanThawIn(room, job)) continue;
    for (const JobRecord* other : accounts_.RunningBeside(job, node)) move.request = other->id;
    if (move.request == JobId()) return false;  // strays, which are being ended
  }
  if (move.request == JobId() && job.state == JobState::kResuming) return false;
  move.event = move.request == JobId()            ? JobEvent::kOrderResume
               : job.state == JobState::kResuming ? JobEvent::kStaysFrozen
                                                  : JobEvent::kOrderSuspend;
  if (move.request != JobId())
    absl::StrAppend(&move.reason, ", and job ", move.request.value(), " has its place");
  recorder_.Move(job, std::move(move));
  return true;
}

// One that cannot go on stays frozen as a whole, and gives its slots away. Not before its other ranks run or
// cannot either: one that is only about to would use what is given away.
bool JobObserver::ObserveFreeze(const JobRecord& job) {
  const bool freezing = job.state == JobState::kSuspending;
  bool all = true, about_to_run = false;
  std::string stays_frozen;
  for (int rank : cluster_.LiveRanks(job)) {
    const TaskSeen seen = cluster_.Seen(job, rank);
    const bool failed = seen.report.failed_op() - OpOf(job) + 1 >= kFreezeAttempts;
    const std::string why = failed ? absl::StrCat(On(job, rank), ": ", seen.report.error()) : "";
    if (!CannotThaw(job, seen.report)) {
      about_to_run |= seen.phase() != v1::RUNNING;
    } else if (stays_frozen.empty()) {
      stays_frozen = why;
    }
    if (failed && freezing) {
      const Time back_at = clock_.Now() + kMethodPause;
      recorder_.Record(job.id, MethodLost{Method::kSuspend, why, back_at});
      if (job.current.through_ram) recorder_.Record(job.id, MethodLost{Method::kCheckpoint, why, back_at});
      recorder_.Move(job, Moved(JobEvent::kFreezeFailed, why));
      return true;
    }
    all &= seen.phase() == (freezing ? v1::SUSPENDED : v1::RUNNING);
  }
  if (!stays_frozen.empty() && !about_to_run) {
    recovery_.HoldBack(job.id, clock_.Now() + Recovery::kLackPause);
    recorder_.Move(job, Moved(JobEvent::kStaysFrozen, stays_frozen));
    return true;
  }
  if (all) recorder_.Move(job, Moved(freezing ? JobEvent::kFrozen : JobEvent::kThawed));
  return all;
}

// A rank that has ended since may be in no image, and was alive for those of the others.
bool JobObserver::ObserveEndedRank(const JobRecord& job) {
  const auto checkpoint = state_.checkpoints.find(job.current.checkpoint);
  if (!cluster_.MeetsAtBarriers(job) || checkpoint == state_.checkpoints.end() ||
      checkpoint->second.exited == job.exited)
    return false;
  const char* const why = "one of its ranks ended meanwhile";
  if (job.state == JobState::kCommitting && cluster_.CommitOf(job).has_left)
    recovery_.FallBack(job, why);
  else
    recorder_.Move(job, Moved(job.in_ram ? JobEvent::kStaysFrozen : JobEvent::kDumpFailed, why));
  return true;
}

bool JobObserver::ObserveDump(const JobRecord& job) {
  if (ObserveEndedRank(job)) return true;
  const Ownership& ownership = OwnershipOf(job.spec);
  if (!job.exited.empty() && !ownership.siding_starts && !ownership.siding_ends) {
    DumpFailed(job, -1, "one of its tasks has ended, and would be started again with the others");
    return true;
  }
  const bool together = DumpsTogether(job);
  std::set<int64_t> attempts_made;
  bool runs_on = false;
  bool all = true;
  Bytes bytes, new_bytes;
  bool all_say_new = true;
  Duration waited = Duration::max();
  for (int rank : cluster_.LiveRanks(job)) {
    const TaskSeen seen = cluster_.Seen(job, rank);
    const int64_t attempts = seen.report.failed_op() - OpOf(job) + 1;
    const bool hopeless = !seen.report.cannot_checkpoint().empty() || seen.report.tier_problem();
    const std::string why = absl::StrCat(On(job, rank), ": ", seen.report.error());
    if (attempts >= kDumpAttempts || (attempts >= 1 && hopeless)) {
      DumpFailed(job, rank, why);
      return true;
    }
    if (attempts >= 1 && together) {
      if (job.checkpoint_failures + 1 >= kDumpAttempts) {
        DumpFailed(job, rank, why);
      } else {
        recorder_.Move(job, Moved(JobEvent::kDumpFailed, why));
      }
      return true;
    }
    if (attempts >= 1) NoteFailure(job, rank);
    all &= seen.phase() == v1::PREPARED && seen.report.checkpoint() == job.current.checkpoint.value();
    bytes += Bytes{seen.report.image_bytes()};
    new_bytes += Bytes{seen.report.image_new_bytes()};
    all_say_new &= seen.report.image_new_bytes() > 0;
    waited = std::min(waited, Duration(seen.report.waited_us()));
    attempts_made.insert(seen.report.op());
    runs_on |= seen.report.runs_on();
  }
  if (!all) return false;
  // Under an older order, of before a copy of the journal was put back.
  if (runs_on && attempts_made.size() > 1) {
    recorder_.Move(job, Moved(JobEvent::kDumpFailed, "its ranks were stopped at different moments"));
    return true;
  }
  JobMoved move = Moved(JobEvent::kCommit);
  move.checkpoint = job.current.checkpoint;
  move.bytes = bytes;
  if (all_say_new) move.new_bytes = new_bytes;
  if (!attempts_made.empty()) move.waited = waited;
  recorder_.Move(job, std::move(move));
  return true;
}

// Its owner should know: the job may have been frozen for a while without an image.
void JobObserver::NoteFailure(const JobRecord& job, int rank) {
  ObservedTask& task = observed_.observed_tasks[job.nodes[rank]][ClusterView::TaskOf(job, rank)];
  if (task.failure_noted == task.report.failed_op()) return;
  task.failure_noted = task.report.failed_op();
  recorder_.Record(job.id,
                   Noted{absl::StrCat(On(job, rank), ": ", task.report.error(), "; it is dumped again")});
}

// Of a commit that failed nothing is lost: the rank is whole, and dumped again.
bool JobObserver::ObserveCommit(const JobRecord& job) {
  if (ObserveEndedRank(job)) return true;
  const CommitView commit = cluster_.CommitOf(job);
  if (commit.all_done) {
    JobMoved done = Moved(job.current.keep_running ? JobEvent::kContinued : JobEvent::kReleased);
    // Only now: a rank whose agent went away before its commit has been dumped again.
    for (int rank : cluster_.LiveRanks(job)) {
      const v1::TaskReport& report = cluster_.Seen(job, rank).report;
      if (!report.image_digest().empty()) done.digests[rank] = report.image_digest();
      done.stopped = std::max(done.stopped, Duration(report.stopped_us()));
    }
    NoteImagesWritten(job);
    recorder_.Move(job, std::move(done));
    return true;
  }
  // A rank with an order under way may still leave. Without one none does: its next commit would be of
  // another attempt.
  if (commit.failed && commit.all_whole) {
    DumpFailed(job, commit.rank, commit.why);
    return true;
  }
  if (commit.has_left && !job.current.keep_running && commit.attempts >= kLastRankAttempts) {
    recovery_.FallBack(job, commit.why);  // the images that are there are deleted
    return true;
  }
  for (int rank : cluster_.LiveRanks(job)) {
    const v1::TaskReport& report = cluster_.Seen(job, rank).report;
    if (report.failed_op() >= OpOf(job) && IsToBeDumpedAgain(job, report) && !commit.failed)
      NoteFailure(job, rank);
  }
  return false;
}

// Not planned with for a while, or until the job has been checkpointed, or started or restored again. If the
// tier is to blame, nothing is held against the job: it may be dumped elsewhere, and others may not be dumped
// there. `rank`: that failed; -1: none.
void JobObserver::DumpFailed(const JobRecord& job, int rank, const std::string& why) {
  if (rank >= 0 && cluster_.Seen(job, rank).report.tier_problem()) {
    NoteTierFailure(job, rank);
  } else {
    recorder_.Record(job.id, MethodLost{Method::kCheckpoint, why, clock_.Now() + kMethodPause});
  }
  recorder_.Move(job, Moved(job.in_ram ? JobEvent::kStaysFrozen : JobEvent::kDumpFailed, why));
}

void JobObserver::NoteTierFailure(const JobRecord& job, int rank) {
  FailedTier& tier = observed_.observed_nodes[job.nodes[rank]].failed_tiers[job.current.tier];
  ++tier.failures;
  tier.last = clock_.Now();
  tier.why = cluster_.Seen(job, rank).report.error();
}

// That the job can be checkpointed, and that its nodes' tier takes images, has been seen.
void JobObserver::NoteImagesWritten(const JobRecord& job) {
  for (int rank : cluster_.LiveRanks(job))
    observed_.observed_nodes[job.nodes[rank]].failed_tiers.erase(job.current.tier);
  if (job.methods_back_at.contains(Method::kCheckpoint))
    recorder_.Record(job.id, MethodRegained{Method::kCheckpoint});
}

bool JobObserver::ObserveSave(const JobRecord& job) {
  if (cluster_.HaveAllSaved(job)) {
    recorder_.Move(job, Moved(JobEvent::kReleased));
    return true;
  }
  bool all = true;
  for (int rank : cluster_.LiveRanks(job)) {
    const TaskSeen seen = cluster_.Seen(job, rank);
    if (seen.known && seen.report.failed_op() == OpOf(job)) {
      const std::string why = absl::StrCat(On(job, rank), ": ", seen.report.error());
      recorder_.Record(job.id, MethodLost{Method::kApp, why, Time{}});
      recorder_.Move(job, Moved(JobEvent::kSaveFailed, why));
      return true;
    }
    all &= job.current.keep_running && seen.known && IsLive(seen.phase()) &&
           IsOfOrder(job, seen.report.committed_op());
  }
  if (all) recorder_.Move(job, Moved(JobEvent::kContinued));
  return all;
}

// It runs on: what was planned with it does not hold, and is planned again without. An order that is not a
// plan's is given again and again.
bool JobObserver::ObserveKillRefused(const JobRecord& job) {
  if (job.current.request == JobId() || job.current.for_good || job.current.over_limit) return false;
  if (IsExternallyManaged(job) ? !manager_.RunsInQueue(job.id) : !HasBegun(job)) return false;
  if (!cluster_.IsNotEndedYet(job)) return false;
  std::string why;
  for (int rank : cluster_.LiveRanks(job)) {
    const TaskSeen seen = cluster_.Seen(job, rank);
    if (seen.report.failed_op() >= OpOf(job)) why = absl::StrCat(On(job, rank), ": ", seen.report.error());
  }
  if (why.empty()) return false;
  recorder_.Record(job.id, MethodLost{Method::kKill, why, clock_.Now() + kRefusedPause});
  recorder_.Move(job, Moved(GoesOnBy(job), why));
  return true;
}

bool JobObserver::ObserveKill(const JobRecord& job) {
  if (ObserveKillRefused(job)) return true;
  for (int rank : cluster_.LiveRanks(job)) {
    // An agent that does not know the task says so when it is told to kill it. Until then the order to start
    // the task may still be on its way.
    if (!IsGone(cluster_.Seen(job, rank).phase())) return false;
  }
  const std::vector<int> ranks = cluster_.LiveRanks(job);
  const bool lost = std::any_of(ranks.begin(), ranks.end(),
                                [&](int rank) { return cluster_.Seen(job, rank).phase() == v1::LOST; });
  // A job that was down with its node has not used up its walltime.
  const bool for_good = job.current.for_good && !(job.current.over_limit && lost);
  JobEvent event = JobEvent::kRequeued;
  if (for_good) {
    event = job.current.over_limit ? JobEvent::kFailed : JobEvent::kCancelled;
  } else if (!job.current.from_beginning && ResumptionOf(state_, job) != Resumption::kBeginning) {
    event = JobEvent::kReleased;
  }
  JobMoved move = Moved(event, job.current.reason);
  move.by = job.current.by;
  const bool may_start_over =
      job.current.from_beginning || MayStartOverAfterLoss(job) || (!lost && MayStartOver(job));
  if (event == JobEvent::kRequeued && !may_start_over) {
    // Its node has failed, or the image that it was to continue from was found damaged meanwhile.
    move.event = event = JobEvent::kReleased;
    move.reason += HowToStartOver(job);
  }
  if (for_good) move.exit_code = 128 + 15;
  if (!for_good) move.nodes = cluster_.WhereTasksMayLive(job);
  recorder_.Move(job, std::move(move));
  return true;
}

}  // namespace siding
