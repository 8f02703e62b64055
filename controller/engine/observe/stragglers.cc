#include "controller/engine/observe/stragglers.h"

#include <climits>
#include <vector>

#include "controller/engine/state/predicates.h"

namespace siding {
namespace {

bool IsOnItsWay(JobState state) {
  return IsBeginning(state) || state == JobState::kDumping || state == JobState::kCommitting;
}

// It begins, has a network, is joined, and runs, in whatever order.
int StageOfStart(const v1::TaskReport& report) {
  const bool runs = report.phase() == v1::RUNNING;
  const bool begins = report.phase() == v1::LAUNCHING || report.phase() == v1::RESTORING;
  if (!begins && !runs) return 0;
  return 1 + (runs ? 1 : 0) + (report.has_endpoint() ? 1 : 0) + (report.joined() ? 1 : 0);
}

// Of a dump; at a barrier it has come further than it had begun.
constexpr int kBegun = 1;
constexpr int kPrepared = kBegun + int{v1::BARRIER_LEAVE};
constexpr int kCounts = kPrepared + 1, kWaits = kCounts + 1, kOver = kWaits + 1;

int StageOfDump(const JobRecord& job, const v1::TaskReport& report) {
  const bool counts = HasCommitted(job, report);
  const v1::TaskPhase after = job.current.keep_running ? v1::RUNNING : v1::CHECKPOINTED;
  if (report.phase() == after) return counts ? kOver : 0;
  if (!IsOfOrder(job, report.op())) return 0;
  if (report.phase() == v1::DUMPING) return kBegun + report.barrier();
  if (report.phase() != v1::PREPARED) return 0;
  if (!counts) return kPrepared;
  return report.barrier() == v1::BARRIER_LEAVE ? kWaits : kCounts;
}

}  // namespace

int Stragglers::StageOf(const JobRecord& job, const v1::TaskReport& report) {
  return IsBeginning(job.state) ? StageOfStart(report) : StageOfDump(job, report);
}

void Stragglers::Note(const JobRecord& job) {
  const std::vector<int> ranks = cluster_.LiveRanks(job);
  if (ranks.size() < 2 || !IsOnItsWay(job.state)) {
    last_.erase(job.id);
    return;
  }
  Last last{INT_MAX, 0};
  for (const int rank : ranks) {
    const int stage = StageOf(job, cluster_.Seen(job, rank).report);
    if (stage < last.stage) last = {stage, 0};
    if (stage == last.stage) ++last.ranks;
  }
  last_[job.id] = last;
}

bool Stragglers::AreBehind(const NodeId& node, const v1::TaskReport& before, const v1::TaskReport& report) {
  const TaskId id = IdOf(report);
  const auto last = last_.find(id.job);
  if (last == last_.end() || !cluster_.IsPlacedOn(node, id)) return false;
  const JobRecord& job = state_.jobs.at(id.job);
  if (before.failed_op() != report.failed_op() || !report.not_joined().empty()) return false;
  const int was = StageOf(job, before), is = StageOf(job, report);
  // One that is dumped again is told to commit at once.
  if (is <= was || (job.state == JobState::kCommitting && is == kPrepared)) return false;
  if (was == last->second.stage) --last->second.ranks;
  return last->second.ranks > 0;
}

}  // namespace siding
