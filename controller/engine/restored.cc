// A journal that is a copy of an earlier time: agents know more than it does. Nothing is placed before they
// have had time to say so; jobs that were moved since are found where they are now.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/engine/impl.h"

namespace siding {
namespace {

// Jobs that the journal does not know may still run; their numbers are not given again.
constexpr int64_t kSkippedNumbers = 100000;
// Starts of a job that the journal does not know; what came of them may still live.
constexpr int kSkippedIncarnations = 1000;
// In which agents dial again.
constexpr Duration kAllAreBack = std::chrono::seconds(15);
// In which a task is told to end, or heard of again.
constexpr Duration kItEnds = std::chrono::seconds(5);

}  // namespace

void Engine::Impl::NoteRestored() {
  const int64_t copied = journal_.restored();
  if (copied != 0) Record(JobId(), JournalRestored{copied, JobId(state_.last_job.value() + kSkippedNumbers)});
  // A controller that died before all were back waits for them again.
  const Time now = clock_.Now();
  if (now < state_.restored_at + kAllAreBack) caught_up_at_ = now + kAllAreBack;
}

int Engine::Impl::NextIncarnation(const JobRecord& job) {
  return job.incarnation + 1 + (job.from_copy ? kSkippedIncarnations : 0);
}

// Where each rank of this incarnation lives, or was when it ended by itself; empty: not all of them have been
// seen.
std::vector<NodeId> Engine::Impl::WhereItLives(const JobRecord& job, int incarnation) const {
  std::vector<NodeId> nodes;
  for (int rank = 0; rank < job.spec.nodes; ++rank) {
    const TaskId id{job.id, incarnation, rank};
    const auto there =
        std::find_if(state_.observed_tasks.begin(), state_.observed_tasks.end(), [&](const auto& node) {
          const auto task = node.second.find(id);
          if (task == node.second.end()) return false;
          const v1::TaskReport& report = task->second.report;
          return IsLive(report.phase()) || (report.phase() == v1::EXITED && report.own_end());
        });
    if (there == state_.observed_tasks.end()) return {};
    nodes.push_back(there->first);
  }
  return nodes;
}

// A task that lives, and of which the journal, being a copy, does not know: its job is not started once more
// beside it.
void Engine::Impl::HoldBackBeside(const TaskId& id, v1::TaskPhase phase) {
  const auto job = state_.jobs.find(id.job);
  if (job == state_.jobs.end() || !job->second.from_copy) return;
  if (id.incarnation > job->second.incarnation && IsLive(phase)) not_before_[id.job] = clock_.Now() + kItEnds;
}

// Recorded as running, and found frozen: since the journal was copied it has made way for somebody, who may
// have its place. How it goes on is recorded, so that it is not taken for frozen while it is being thawed.
bool Engine::Impl::JudgeFrozen(JobRecord& job) {
  if (IsHosted(job) || (job.state == JobState::kResuming && !job.from_copy)) return false;
  const std::vector<int> ranks = LiveRanks(job);
  const bool frozen = std::any_of(ranks.begin(), ranks.end(),
                                  [&](int rank) { return Seen(job, rank).phase() == v1::SUSPENDED; });
  if (!frozen) return false;
  held_back_.insert(job.id);  // unless something follows now
  if (IsCatchingUp()) return false;
  JobMoved move;
  move.reason = "it is frozen, which nobody has recorded";
  for (const auto& [node, room] : RoomBesideOthers(job)) {
    if (CanThawIn(room, job)) continue;
    for (const JobRecord* other : RunningBeside(job, node)) move.request = other->id;
    if (move.request == JobId()) return false;  // strays, which are being ended
  }
  if (move.request == JobId() && job.state == JobState::kResuming) return false;
  move.event = move.request == JobId()            ? JobEvent::kOrderResume
               : job.state == JobState::kResuming ? JobEvent::kStaysFrozen
                                                  : JobEvent::kOrderSuspend;
  if (move.request != JobId())
    absl::StrAppend(&move.reason, ", and job ", move.request.value(), " has its place");
  Move(job, std::move(move));
  return true;
}

// Not before it is known who has its place by now, and not without that being recorded.
bool Engine::Impl::MayThaw(const JobRecord& job) const {
  if (IsHosted(job)) return true;
  return job.state == JobState::kResuming && (!job.from_copy || (!IsCatchingUp() && HasRoomToGoOn(job)));
}

// A task of a job that the journal does not know is left alone: it is somebody's work, and perhaps the
// journal is wrong. But what waits for an order would wait for ever: it goes on as if it had been taken back.
void Engine::Impl::LetGo(const NodeId& node, const TaskId& id, const v1::TaskReport& report) {
  if (report.has_spec() || IsCatchingUp()) return;  // a cluster manager's has its own way
  v1::ToAgent command;
  switch (report.phase()) {
    case v1::SUSPENDED:
      command.set_op(report.failed_op() + 1);
      command.mutable_resume();
      break;
    case v1::RUNNING:
    case v1::DUMPING:
    case v1::PREPARED:
      if (report.op() == 0) return;
      command.set_op(report.op());
      command.mutable_abort();
      break;
    default:
      return;
  }
  Send(node, id, std::move(command));
}

// Where siding's own jobs run is not for agents to say, but for these seconds and of jobs of the copy.
void Engine::Impl::CatchUp(const v1::TaskReport& report) {
  if (!IsCatchingUp()) return;
  const TaskId id = IdOf(report);
  const auto found = state_.jobs.find(id.job);
  if (report.has_spec() || found == state_.jobs.end()) return;
  JobRecord& job = found->second;
  if (!job.from_copy || id.incarnation <= job.incarnation || IsTerminal(job.state)) return;
  std::vector<NodeId> nodes = WhereItLives(job, id.incarnation);
  if (nodes.empty()) return;
  constexpr char kWhy[] = "it has been moved since the journal was copied";
  JobMoved move;
  if (job.state == JobState::kKilling) {
    if (job.current.for_good) return;
    const bool saved = ResumptionOf(state_, job) != Resumption::kBeginning || !MayStartOver(job);
    move.event = saved ? JobEvent::kReleased : JobEvent::kRequeued;
    move.reason = kWhy;
    move.nodes = WhereTasksMayLive(job);
    Move(job, std::exchange(move, {}));
  } else if (HoldsNodes(job.state)) {
    FallBack(job, kWhy);
  }
  move.event = JobEvent::kPlace;
  move.reason = "is there already";
  move.nodes = nodes;
  move.incarnation = id.incarnation;
  move.found = true;
  Move(job, std::move(move));
  // Ranks that had ended when the copy was made may have been started again.
  if (!job.exited.empty()) Record(job.id, TasksChanged{std::move(nodes), 0});
}

}  // namespace siding
