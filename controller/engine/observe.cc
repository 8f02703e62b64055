// What the agents report of a job's tasks, turned into the lifecycle's events. Judge() looks at the whole of
// what is known, never at a single message, so the order in which reports arrive does not matter.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "controller/engine/impl.h"
#include "controller/wire/wire.h"

namespace siding {
namespace {

// A frozen job that could not go on may be able to after this.
constexpr Duration kLackPause = std::chrono::seconds(10);
// Attempts at a dump that failed for a reason that may pass, such as a process that ended in the middle of
// it.
constexpr int kDumpAttempts = 2;
// Attempts to freeze or thaw a task, before that is taken for impossible.
constexpr int kFreezeAttempts = 2;
// A method that has failed is tried again after this.
constexpr Duration kMethodPause = std::chrono::minutes(10);
// Attempts to dump one rank again after its peers have been parked.
constexpr int kCommitAttempts = 5;

}  // namespace

std::string On(const JobRecord& job, int rank) {
  return absl::StrCat("rank ", rank, " on ", job.nodes[rank].value());
}

JobMoved Moved(JobEvent event, std::string reason) {
  JobMoved move;
  move.event = event;
  move.reason = std::move(reason);
  return move;
}

bool Engine::Impl::Judge(JobRecord& job) {
  if (JudgeImages(job) || JudgeGivenUp(job)) return true;
  if (!HoldsNodes(job.state) || IsSeenInQueueOnly(job)) return false;
  if (IsBeginning(job.state) && JudgeStart(job)) return true;
  if (JudgeExits(job)) return true;
  if (job.state != JobState::kKilling && (JudgeLost(job) || JudgeGpuState(job))) return true;
  switch (job.state) {
    case JobState::kRunning:
      return JudgeFrozen(job);
    case JobState::kResuming:
      return JudgeFrozen(job) || JudgeFreeze(job);
    case JobState::kSuspending:
      return JudgeFreeze(job);
    case JobState::kDumping:
      return JudgeDump(job);
    case JobState::kCommitting:
      return JudgeCommit(job);
    case JobState::kSaving:
      return JudgeSave(job);
    case JobState::kKilling:
      return JudgeKill(job);
    default:
      return false;
  }
}

namespace {

std::string HowItFailed(const v1::TaskReport& report, const std::string& where, int code) {
  if (report.out_of_memory() > 0)
    return absl::StrCat(where, " was out of memory: used all of its ",
                        FormatBytes(Bytes{report.out_of_memory()}));
  if (report.exit_signal() != 0) return absl::StrCat(where, " was ended by signal ", report.exit_signal());
  return absl::StrCat(where, " exited with ", code);
}

}  // namespace

// Ranks that ended by themselves, if only just before they would have been ended. A job is done when all of
// them exited with 0, and has failed when one did not: the others are ended then, they would wait for it for
// ever.
bool Engine::Impl::JudgeExits(JobRecord& job) {
  for (int rank : LiveRanks(job)) {
    const TaskSeen seen = Seen(job, rank);
    if (seen.phase() != v1::EXITED) continue;
    if (job.state == JobState::kKilling && !seen.report.own_end()) continue;
    if (!IsHosted(job) && !seen.report.own_end()) {
      FallBack(job, absl::StrCat(On(job, rank), " has been ended by an order that is not recorded"));
      return true;
    }
    if (BackToScript(job)) return true;
    if (GoesOnInQueue(job)) return false;
    const int code =
        seen.report.exit_signal() != 0 ? 128 + seen.report.exit_signal() : seen.report.exit_code();
    Record(job.id, RankExited{rank, code});
    if (code == 0 && !LiveRanks(job).empty()) return true;
    JobMoved move = Moved(code == 0 ? JobEvent::kSucceeded : JobEvent::kFailed);
    move.exit_code = code;
    if (code != 0) {
      move.reason = HowItFailed(seen.report, On(job, rank), code);
    }
    Move(job, std::move(move));
    return true;
  }
  return false;
}

// An agent that knows nothing of a task may hear of it yet. Not if the journal is a copy: of what was ordered
// before, it has heard, and the task may have been there and be gone.
bool Engine::Impl::StartIsOnItsWay(const JobRecord& job) const {
  return IsBeginning(job.state) && (IsHosted(job) || !job.from_copy);
}

// Ranks whose processes are gone though nobody ended them, on a node that is there to say so, or is lost.
bool Engine::Impl::JudgeLost(JobRecord& job) {
  for (int rank : LiveRanks(job)) {
    const TaskSeen seen = Seen(job, rank);
    if (!seen.connected) continue;
    const bool expected = StartIsOnItsWay(job);
    const bool parked_early = seen.phase() == v1::CHECKPOINTED || seen.phase() == v1::SAVED;
    // An older order may have been carried out after a copy of the journal was made.
    const bool gone_as_ordered =
        parked_early &&
        ((job.state == JobState::kCommitting && !job.current.keep_running) ||
         (job.state == JobState::kSaving && (!job.current.keep_running || HaveAllSaved(job))));
    const bool lost =
        seen.phase() == v1::LOST || (!seen.known && !expected) || (parked_early && !gone_as_ordered);
    if (!lost) continue;
    FallBack(job, IsLost(job.nodes[rank]) ? absl::StrCat(On(job, rank), " is lost with its node")
                                          : absl::StrCat(On(job, rank), " is gone"));
    return true;
  }
  return false;
}

// What a rank had on GPUs cannot be put back. It is frozen for good, or runs without it, and its peers wait
// for it: all are ended, and the job goes on from its newest image. Without one it fails, unless it may be
// killed.
bool Engine::Impl::JudgeGpuState(JobRecord& job) {
  if (IsBeginning(job.state)) return false;  // a restore that failed so is said to have failed
  for (int rank : LiveRanks(job)) {
    const TaskSeen seen = Seen(job, rank);
    if (!seen.known || !IsLive(seen.phase()) || seen.report.gpu_state_lost().empty()) continue;
    const bool has_image = ResumptionOf(state_, job) != Resumption::kBeginning;
    const bool goes_on = has_image || job.spec.methods.Has(Method::kKill);
    JobMoved move = Moved(goes_on || IsHosted(job) ? JobEvent::kOrderKill : JobEvent::kFailed);
    move.reason = absl::StrCat(On(job, rank), ": ", seen.report.gpu_state_lost(),
                               has_image ? "; it goes on from its newest image"
                               : goes_on ? "; it starts from its beginning"
                                         : "; it has no image, and may not be started from its beginning");
    move.for_good = !goes_on;
    move.gpu_state_lost = true;
    if (move.event == JobEvent::kFailed) move.exit_code = 1;
    Move(job, std::move(move));
    return true;
  }
  return false;
}

bool Engine::Impl::JudgeStart(JobRecord& job) {
  Time started{};
  bool all = true;
  for (int rank : LiveRanks(job)) {
    const TaskSeen seen = Seen(job, rank);
    if (seen.phase() == v1::LAUNCH_FAILED) {
      StartFailed(job, rank, seen.report);
      return true;
    }
    if (seen.phase() == v1::RESTORE_FAILED) {
      RestoreFailed(job, rank, seen.report);
      return true;
    }
    // A rank that has exited already has run, too; one that was found where it is may be frozen.
    all &= seen.phase() == v1::RUNNING || seen.phase() == v1::EXITED || seen.phase() == v1::SUSPENDED;
    started = std::max(started, FromMicros(seen.report.started_us()));
  }
  if (!all) return false;
  JobMoved move = Moved(job.state == JobState::kStarting ? JobEvent::kStarted : JobEvent::kRestored);
  move.checkpoint = job.current.checkpoint;
  // By the nodes' clocks, which may be hours off: believed as far as it can be true. What a cluster manager
  // has started has begun before that was known here.
  const Time now = clock_.Now();
  const bool can_be = started <= now && (started >= job.state_since || IsHosted(job));
  move.started = can_be ? started : now;
  retries_.erase(job.id);
  Move(job, std::move(move));
  return true;
}

bool Engine::Impl::JudgeFreeze(JobRecord& job) {
  const bool freezing = job.state == JobState::kSuspending;
  bool all = true;
  for (int rank : LiveRanks(job)) {
    const TaskSeen seen = Seen(job, rank);
    const bool failed = seen.report.failed_op() - OpOf(job) + 1 >= kFreezeAttempts;
    const std::string why = failed ? absl::StrCat(On(job, rank), ": ", seen.report.error()) : "";
    if (failed && !freezing && job.current.event == JobEvent::kOrderResume && seen.phase() == v1::SUSPENDED) {
      not_before_[job.id] = clock_.Now() + kLackPause;
      Move(job, Moved(JobEvent::kStaysFrozen, why));
      return true;
    }
    if (failed && freezing) {
      const Time back_at = clock_.Now() + kMethodPause;
      Record(job.id, MethodLost{Method::kSuspend, why, back_at});
      if (job.current.through_ram) Record(job.id, MethodLost{Method::kCheckpoint, why, back_at});
      Move(job, Moved(JobEvent::kFreezeFailed, why));
      return true;
    }
    all &= seen.phase() == (freezing ? v1::SUSPENDED : v1::RUNNING);
  }
  if (all) Move(job, Moved(freezing ? JobEvent::kFrozen : JobEvent::kThawed));
  return all;
}

// Its owner should know: it may have been frozen for a while in vain.
void Engine::Impl::NoteFailure(const JobRecord& job, int rank) {
  ObservedTask& task = state_.observed_tasks[job.nodes[rank]][TaskOf(job, rank)];
  if (task.failure_noted == task.report.failed_op()) return;
  task.failure_noted = task.report.failed_op();
  Record(job.id, Noted{absl::StrCat(On(job, rank), ": ", task.report.error(), "; it is dumped again")});
}

bool Engine::Impl::JudgeDump(JobRecord& job) {
  bool all = true;
  Bytes bytes;
  for (int rank : LiveRanks(job)) {
    const TaskSeen seen = Seen(job, rank);
    const int64_t attempts = seen.report.failed_op() - OpOf(job) + 1;
    if (attempts >= kDumpAttempts || (attempts >= 1 && !seen.report.cannot_checkpoint().empty())) {
      const std::string why = absl::StrCat(On(job, rank), ": ", seen.report.error());
      // Not planned with for a while, or until the job has been started or restored again.
      Record(job.id, MethodLost{Method::kCheckpoint, why, clock_.Now() + kMethodPause});
      Move(job, Moved(job.in_ram ? JobEvent::kStaysFrozen : JobEvent::kDumpFailed, why));
      return true;
    }
    if (attempts >= 1) NoteFailure(job, rank);
    all &= seen.phase() == v1::PREPARED && seen.report.checkpoint() == job.current.checkpoint.value();
    bytes += Bytes{seen.report.image_bytes()};
  }
  if (!all) return false;
  JobMoved move = Moved(JobEvent::kCommit);
  move.checkpoint = job.current.checkpoint;
  move.bytes = bytes;
  Move(job, std::move(move));
  return true;
}

bool Engine::Impl::JudgeCommit(JobRecord& job) {
  bool all = true;
  for (int rank : LiveRanks(job)) {
    const TaskSeen seen = Seen(job, rank);
    if (job.current.keep_running) {
      all &= seen.known && IsLive(seen.phase()) && seen.report.committed_op() >= OpOf(job);
    } else {
      all &= seen.phase() == v1::CHECKPOINTED;
    }
    if (seen.report.failed_op() >= OpOf(job) + kCommitAttempts) {
      const std::string why = absl::StrCat(On(job, rank), ": ", seen.report.error());
      Record(job.id, CheckpointChanged{job.current.checkpoint, "damaged", why});
      FallBack(job, why);
      return true;
    }
  }
  if (all) Move(job, Moved(job.current.keep_running ? JobEvent::kContinued : JobEvent::kReleased));
  return all;
}

// And ended.
bool Engine::Impl::HaveAllSaved(const JobRecord& job) const {
  const std::vector<int> ranks = LiveRanks(job);
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](int rank) { return Seen(job, rank).phase() == v1::SAVED; });
}

bool Engine::Impl::JudgeSave(JobRecord& job) {
  if (HaveAllSaved(job)) {
    Move(job, Moved(JobEvent::kReleased));
    return true;
  }
  bool all = true;
  for (int rank : LiveRanks(job)) {
    const TaskSeen seen = Seen(job, rank);
    if (seen.known && seen.report.failed_op() == OpOf(job)) {
      const std::string why = absl::StrCat(On(job, rank), ": ", seen.report.error());
      Record(job.id, MethodLost{Method::kApp, why, Time{}});
      Move(job, Moved(JobEvent::kSaveFailed, why));
      return true;
    }
    all &= job.current.keep_running && seen.known && IsLive(seen.phase()) &&
           seen.report.committed_op() >= OpOf(job);
  }
  if (all) Move(job, Moved(JobEvent::kContinued));
  return all;
}

bool Engine::Impl::JudgeKill(JobRecord& job) {
  for (int rank : LiveRanks(job)) {
    // An agent that knows nothing of the task says so when it is told to kill it. Before, the order to start
    // it may still be on its way.
    if (!IsGone(Seen(job, rank).phase())) return false;
  }
  const std::vector<int> ranks = LiveRanks(job);
  const bool lost =
      std::any_of(ranks.begin(), ranks.end(), [&](int rank) { return Seen(job, rank).phase() == v1::LOST; });
  // One that was down with its node has not had the time for which it was to be ended.
  const bool for_good = job.current.for_good && !(job.current.over_limit && lost);
  JobEvent event = JobEvent::kRequeued;
  if (for_good) {
    event = job.current.over_limit ? JobEvent::kFailed : JobEvent::kCancelled;
  } else if (ResumptionOf(state_, job) != Resumption::kBeginning) {
    event = JobEvent::kReleased;
  }
  JobMoved move = Moved(event, job.current.reason);
  if (event == JobEvent::kRequeued && !MayStartOver(job)) {
    // What it was to go on from was found damaged meanwhile.
    move.event = event = JobEvent::kReleased;
    move.reason += HowToStartOver(job);
  }
  if (for_good) move.exit_code = 128 + 15;
  if (!for_good) move.nodes = WhereTasksMayLive(job);
  Move(job, std::move(move));
  return true;
}

}  // namespace siding
