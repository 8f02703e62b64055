// A journal that is a copy of an earlier time: agents know more than it does. Nothing is placed before they
// have had time to say so; jobs that were moved since are found where they are now.
#include <algorithm>

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
  if (HoldsNodes(job.state)) FallBack(job, "it has been moved since the journal was copied");
  JobMoved move;
  move.event = JobEvent::kPlace;
  move.reason = "is there already";
  move.nodes = nodes;
  move.incarnation = id.incarnation;
  Move(job, std::move(move));
  // Ranks that had ended when the copy was made may have been started again.
  if (!job.exited.empty()) Record(job.id, TasksChanged{std::move(nodes), 0});
}

}  // namespace siding
