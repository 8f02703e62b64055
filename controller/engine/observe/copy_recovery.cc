#include "controller/engine/observe/copy_recovery.h"

#include <algorithm>
#include <utility>

#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"

namespace siding {
namespace {

// Jobs that the journal does not know may still run; their numbers are not used again.
constexpr int64_t kSkippedNumbers = 100000;
// In which agents dial again.
constexpr Duration kAllAreBack = std::chrono::seconds(15);
// In which a task is told to end, or heard of again.
constexpr Duration kItEnds = std::chrono::seconds(5);

}  // namespace

void CopyRecovery::NoteRestored() {
  const int64_t copied = recorder_.restored();
  if (copied != 0)
    recorder_.Record(JobId(), JournalRestored{copied, JobId(state_.last_job.value() + kSkippedNumbers),
                                              kMostOrdersSkipped});
  // A controller that died before all agents were back waits for them again.
  const Time now = clock_.Now();
  if (now < state_.restored_at + kAllAreBack) startup_.caught_up_at = now + kAllAreBack;
}

void CopyRecovery::HoldBack() {
  for (const auto& [node, tasks] : state_.observed_tasks) {
    if (!cluster_.IsConnected(node)) continue;
    for (const auto& [id, task] : tasks) HoldBackBeside(node, id, task.report.phase());
  }
}

void CopyRecovery::CatchUp(const v1::TaskReport& report) {
  if (!startup_.IsCatchingUp(clock_.Now())) return;
  const TaskId id = IdOf(report);
  const auto found = state_.jobs.find(id.job);
  if (report.has_spec() || found == state_.jobs.end()) return;
  const JobRecord& job = found->second;
  if (!job.from_copy || id.incarnation <= job.incarnation || IsTerminal(job.state)) return;
  std::vector<NodeId> nodes = WhereItLives(job, id.incarnation);
  if (nodes.empty()) return;
  constexpr char kWhy[] = "it has been moved since the journal was copied";
  JobMoved move;
  if (job.state == JobState::kKilling) {
    if (job.current.for_good) return;
    const bool saved = !job.current.from_beginning &&
                       (ResumptionOf(state_, job) != Resumption::kBeginning || !MayStartOver(job));
    move.event = saved ? JobEvent::kReleased : JobEvent::kRequeued;
    move.reason = kWhy;
    move.nodes = cluster_.WhereTasksMayLive(job);
    recorder_.Move(job, std::exchange(move, {}));
  } else if (HoldsNodes(job.state)) {
    recovery_.FallBack(job, kWhy);
  }
  move.event = JobEvent::kPlace;
  move.reason = "is there already";
  move.nodes = nodes;
  move.incarnation = id.incarnation;
  move.found = true;
  recorder_.Move(job, std::move(move));
  // Ranks that had ended when the copy was made may have been started again.
  if (!job.exited.empty()) recorder_.Record(job.id, TasksChanged{std::move(nodes), 0});
}

void CopyRecovery::HoldBackBeside(const NodeId& node, const TaskId& id, v1::TaskPhase phase) {
  const auto found = state_.jobs.find(id.job);
  if (found == state_.jobs.end() || !IsLive(phase)) return;
  const JobRecord& job = found->second;
  if (job.from_copy && id.incarnation > job.incarnation) recovery_.HoldBack(id.job, clock_.Now() + kItEnds);
  if (id.incarnation < job.incarnation && job.submitted < state_.restored_at && !IsTerminal(job.state) &&
      OwnershipOf(job.spec).siding_starts && !IsGivenUp(node, id.job))
    recorder_.Record(id.job, TasksLeft{node});
}

bool CopyRecovery::IsGivenUp(const NodeId& node, JobId job) const {
  const auto found = state_.given_up.find(node);
  return found != state_.given_up.end() && found->second.contains(job);
}

// Where each rank of this incarnation lives, or was when it ended by itself; empty: not all of them have been
// seen.
std::vector<NodeId> CopyRecovery::WhereItLives(const JobRecord& job, int incarnation) const {
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

}  // namespace siding
