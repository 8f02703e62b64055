// What the engine's parts ask of jobs and reports. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "controller/engine/engine.h"
#include "controller/engine/state/cluster_state.h"
#include "controller/platform/platform.h"
#include "controller/wire/task.h"

namespace siding {

// The last report of a task, or that its agent knows none. Valid until the next report.
struct TaskSeen {
  bool known;      // there is a report
  bool connected;  // the node's agent is connected, or the node is lost: the report is current
  const v1::TaskReport& report;
  const std::optional<v1::Progress>& progress;  // of its dump or restore
  v1::TaskPhase phase() const { return known ? report.phase() : v1::TASK_PHASE_UNSPECIFIED; }
};

// A report whose texts fit into the journal.
v1::TaskReport WithShortTexts(v1::TaskReport report);
// It is frozen, and its manager gives nobody its place before it has left.
bool KeepsItsNodes(const JobRecord& job);
// Its work is being saved where it is, and it runs on.
bool IsSavedRunning(const JobRecord& job);
// By which nodes are kept for a request of a manager's while it waits: the newest that has any. Null: there
// is none, or it waits in the queue.
const Plan* KeptPlanOf(const JobRecord& request);
// On its way off its nodes.
bool IsReleasing(const JobRecord& job);
// All its tasks have been seen running since it was started or restored last.
bool HasBegun(const JobRecord& job);
// What is recorded of one that is to be ended when that is withdrawn: it goes back to where it was.
JobEvent GoesOnBy(const JobRecord& job);
// Will be running in a moment, and can be taken off its nodes then.
bool IsArriving(JobState state);
// A request that has been planned and not been granted.
bool WaitsForItsNodes(const JobRecord& job);
// A request that has to start from the beginning, and whose deadline had passed before.
bool StartsOverLate(const JobRecord& job);
// A request that waits in the queue like a batch job: ahead of those, but no job makes way for it.
bool IsQueued(const JobRecord& job);
// A cluster manager decides when and where it runs, and starts its tasks.
bool IsExternallyManaged(const JobRecord& job);
// No agent reports its tasks: all that is known of it is what the cluster manager's queue says.
bool IsKnownFromQueueOnly(const JobRecord& job);
// It is frozen, or being frozen, and its image is to be written afterwards.
bool IsDumpedFrozen(const JobRecord& job);
// It asked for this method, which has not been found not to work.
bool Can(const JobRecord& job, Method method);
// "rank 0 on n1".
std::string On(const JobRecord& job, int rank);
// An image is written while its job stays on its nodes, or such a write has ended, or an older one is
// deleted.
bool OnlySaves(const Event& event);
JobMoved Moved(JobEvent event, std::string reason = "");
// Before what has failed so often is tried again: a second, and each time twice as long, up to a minute.
Duration PauseAfter(int failures);
inline constexpr int kPauseDoublings = 6;
// The same between other bounds: `first` after one failure.
Duration PauseAfter(int failures, Duration first, Duration longest);
// Nodes of these capacities would hold it, were they empty.
bool CouldFit(const Waiting& job, const std::map<NodeId, Resources>& capacities);
// Its memory is there already.
bool CanThawIn(const Resources& room, const JobRecord& job);
// It lives, and neither the journal nor a cluster manager has a job for it: nobody ends it, nor looks for
// what it does.
bool IsStray(const ClusterState& state, const TaskId& id, const v1::TaskReport& report);

// The number of the order under way with a job; the next few are for attempts.
int64_t OpOf(const JobRecord& job);
inline constexpr int64_t kOpsPerOrder = 100;
// Why something is done that somebody has ordered; it stands in journals, since some time with " by ada".
inline constexpr char kAskedFor[] = "asked for";
inline std::string AskedForBy(const std::string& user) { return absl::StrCat(kAskedFor, " by ", user); }
// Its image is being made while it runs on because somebody has asked for it.
bool IsSavedByHand(const JobRecord& job);
// It is being restored from that image, or will be again if the order to end it is withdrawn.
bool IsRestoringFrom(const JobRecord& job, const CheckpointId& image);
// Whether an agent's operation belongs to the order under way. It may have been told of it before a copy of
// the journal was put back, under the number that the order had then.
bool IsOfOrder(const JobRecord& job, int64_t op);
// Its ranks wait for each other where they are about to be stopped, and where they could run on. A dump of
// one after the others' has failed would be of a later moment, so it is the whole that fails.
bool DumpsTogether(const JobRecord& job);
// Of an order after that by which a cluster manager's task is started.
bool IsAfterItsStart(const JobRecord& job, int64_t op);
// The task's image counts that was ordered, whether or not it ran on since. After a copy of the journal was
// put back, that of a dump before may have counted under the same order, which is dumped again.
bool HasCommitted(const JobRecord& job, const v1::TaskReport& task);
// In kCommitting: it is whole, and either has no image or has run on from it.
bool IsToBeDumpedAgain(const JobRecord& job, const v1::TaskReport& task);
// Attempts to freeze or thaw a task, before that is taken for impossible.
inline constexpr int kFreezeAttempts = 2;
// Ordered to continue, the task has failed to so often that it is told no more: it is frozen, and stays so.
bool CannotThaw(const JobRecord& job, const v1::TaskReport& task);
// Of its next start.
int NextIncarnation(const JobRecord& job);
// The id of its checkpoint with this number.
CheckpointId CheckpointOf(const JobRecord& job, int number);
// That it is given before it is stopped; none if it is frozen already.
Duration NoticeOf(const JobRecord& job);
// It may be started from the beginning: nothing of it has run yet, its user allows kill, or it belongs to a
// cluster manager, which decides that itself.
bool MayStartOver(const JobRecord& job);
// The same where what it had done is lost, its node having failed or its images being damaged.
bool MayStartOverAfterLoss(const JobRecord& job);
// Somebody may ask for it while it runs: its user allows kill, or would have it start over after a loss.
bool MayBeRestarted(const JobRecord& job);
// It has no nodes that it would lose by being held, or is on its way off them.
bool MayBeHeld(const JobRecord& job);
// "is held by its user"; empty: it is not.
std::string WhoHolds(const JobRecord& job);
// For a job that may not: what its user can do.
std::string HowToStartOver(const JobRecord& job);
// The request that a job made way for still needs the nodes.
bool RequestStillWants(const DurableState& state, JobId request);
// A text of an agent's or a user's, no longer than is kept, as UTF-8.
std::string Cut(const std::string& text);
// "4 slots, 1.0 GiB, 2 GPUs".
std::string Words(const Resources& r);
// The image of the job that the plan takes in advance; null: none.
const PlanStep* EarlyStepOf(const Plan& plan, JobId job);
// Those that the plan waits for until they end. Others of whom it waits for leave by its steps, which come
// later.
std::vector<JobId> AwaitedToEnd(const Plan& plan);
// The caller is the job's owner, or an operator.
bool MayAct(const Caller& caller, const JobRecord& job);
// Until a job whose time is over is seen to be, and until its agent has said that it has ended.
inline constexpr Duration kLookForTime = std::chrono::seconds(2);
// In which the node-hours of a user's on-demand jobs are counted.
inline constexpr Duration kQuotaWindow = std::chrono::hours(24);

}  // namespace siding
