// What the engine's source files ask of jobs and reports. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "controller/engine/state.h"
#include "controller/platform/platform.h"

namespace siding {

// What an agent last said of a task, or that it knows of none. Good until it says something else.
struct TaskSeen {
  bool known;      // there is a report
  bool connected;  // the node's agent is connected, or the node is lost: the report is current
  const v1::TaskReport& report;
  const std::optional<v1::Progress>& progress;  // of its dump or restore
  v1::TaskPhase phase() const { return known ? report.phase() : v1::TASK_PHASE_UNSPECIFIED; }
};

// The task that a report is of.
TaskId IdOf(const v1::TaskReport& report);
// A report whose texts fit into the journal.
v1::TaskReport WithShortTexts(v1::TaskReport report);
// On its way off its nodes.
bool IsReleasing(const JobRecord& job);
// Will be running in a moment, and can be taken off its nodes then.
bool IsArriving(JobState state);
// A request that has been planned and not been granted.
bool WaitsForItsNodes(const JobRecord& job);
// A request that waits its turn like a batch job: it goes first, but nobody makes way.
bool IsQueued(const JobRecord& job);
// A cluster manager decides when and where it runs, and starts its tasks.
bool IsHosted(const JobRecord& job);
// No agent reports its tasks: all that is known of it is what the cluster manager's queue says.
bool IsSeenInQueueOnly(const JobRecord& job);
// It asked for this method, which has not been found not to work.
bool Can(const JobRecord& job, Method method);
// "rank 0 on n1".
std::string On(const JobRecord& job, int rank);
JobMoved Moved(JobEvent event, std::string reason = "");
// Before what has failed so often is tried again: a second, and each time twice as long, up to a minute.
Duration PauseAfter(int failures);
// Nodes of these capacities would hold it, were they empty.
bool CouldFit(const Waiting& job, const std::map<NodeId, Resources>& capacities);
// Its memory is there already.
bool CanThawIn(const Resources& room, const JobRecord& job);
// The processes are there (or about to be).
bool IsLive(v1::TaskPhase phase);
// The processes are gone.
bool IsGone(v1::TaskPhase phase);

}  // namespace siding
