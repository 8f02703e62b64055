// Questions about tasks and nodes, answered from the recorded state and from what agents said last.
//
// Reads only. Not thread-safe: used under the engine's lock. `state` must outlive it.
#pragma once

#include <string>
#include <vector>

#include "controller/engine/state/cluster_state.h"
#include "controller/engine/state/predicates.h"

namespace siding {

// How far the ranks are of a checkpoint that is to count.
struct CommitView {
  bool all_done = true;    // each rank has an image that counts, and has left or runs on, as ordered
  bool all_whole = true;   // each rank is there, and no order is under way
  bool has_left = false;   // some rank is only in its image
  bool are_apart = false;  // some rank has left or waits to: those that run do so without it
  bool may_leave = true;   // each rank has an image that counts, and has left or can
  bool all_known = true;   // of each rank it is known what has become of it
  // It ran on when its image counted, for its agent had died, and it has ended without its peers, who are in
  // their images or about to be. Its own is as good as theirs.
  std::vector<int> ended_in_image;
  bool failed = false;   // it is to be given up as soon as all are whole; no rank is dumped again
  int64_t attempts = 0;  // of the rank that has failed most often
  int rank = -1;         // which that is; -1: none has failed
  std::string why;       // it did so
};

class ClusterView {
 public:
  explicit ClusterView(const ClusterState& state) : state_(state) {}

  static TaskId TaskOf(const JobRecord& job, int rank) {
    return TaskId{job.id, job.incarnation, job.first_rank + rank};
  }

  // Null: no agent has reported it.
  const ObservedTask* TaskOn(const NodeId& node, const TaskId& id) const;
  // Its agent is connected.
  bool IsConnected(const NodeId& node) const;
  // Its agent is connected, and not silent.
  bool IsHeard(const NodeId& node) const;
  // The agents of all of its ranks that have not exited.
  bool AreHeard(const JobRecord& job) const;
  // What is known of the task of a rank. Valid until the next report.
  TaskSeen Seen(const JobRecord& job, int rank) const;
  // Ranks that have not exited.
  std::vector<int> LiveRanks(const JobRecord& job) const;
  // All of its ranks that have not exited are seen running, by agents that are there to say so.
  bool IsSeenRunning(const JobRecord& job) const;
  // Nothing has been done yet with any task of a cluster manager's job that is to be ended: they run, or,
  // where the job has not begun, are still on their way to it, and that order can be taken back.
  bool IsNotEndedYet(const JobRecord& job) const;
  // All of its ranks that have not exited have saved themselves, and ended.
  bool HaveAllSaved(const JobRecord& job) const;
  // Its ranks have networks of their own, and wait for each other.
  bool KeepsConnections(const JobRecord& job) const;
  // What a dump of it takes on top of what its slowest rank needs: those of a job that keeps its connections
  // wait for each other.
  Duration RanksWait(const JobRecord& job) const;
  // Of a job that keeps its connections, and is being dumped: its ranks stand still, all of them, before
  // packets are kept from any.
  bool HoldsTogether(const JobRecord& job) const;
  // Its ranks go from barrier to barrier together.
  bool MeetsAtBarriers(const JobRecord& job) const { return DumpsTogether(job) || HoldsTogether(job); }
  // Of a job whose ranks are dumped together: the last barrier that all of them have come to.
  v1::DumpBarrier BarrierOf(const JobRecord& job) const;
  // Of a job that is committing.
  CommitView CommitOf(const JobRecord& job) const;
  // An agent has reported the node, or the journal names it.
  bool IsKnown(const NodeId& node) const;
  // Where it was to be moved to; empty: anywhere.
  std::vector<NodeId> TargetOf(const JobRecord& job) const;
  // The task is the one that the recorded state has placed there.
  bool IsPlacedOn(const NodeId& node, const TaskId& task) const;
  // The recorded state says that this task is to be there.
  bool IsWanted(const JobRecord& job, const NodeId& node, const TaskId& task) const;
  // A task of this job's last incarnation whose end is waited for: its report is kept until then.
  static bool IsLeftTask(const JobRecord& job, const NodeId& node, const TaskId& task);
  // Tasks of its last start may still live: if it were started now, it might run twice. For a lost node, an
  // operator has declared that they do not.
  bool HasLeftTasks(const JobRecord& job) const;
  // An agent that does not know a task may still get the order to start it. Not if the journal is a copy: it
  // has got earlier orders, and the task may have been there and be gone. Of a pod it has reported the start.
  bool StartIsOnItsWay(const JobRecord& job) const;
  // The nodes of ranks that have not been seen gone. An agent that does not know a task says that it is gone,
  // unless the order to start it may still be on its way. That an operator declared a node lost is no proof:
  // it may come back.
  std::vector<NodeId> WhereTasksMayLive(const JobRecord& job) const;
  // It is connected and not silent, not cordoned, and its manager uses it.
  bool InUse(const NodeId& node) const;
  // New tasks may be placed there: it is in use, and not faulty. One on which starts have failed gets one job
  // at a time until something has started there.
  bool Usable(const NodeId& node) const;
  bool AreUsable(const std::vector<NodeId>& nodes) const;
  // As its cluster manager says, or else its agent.
  Resources CapacityOf(const NodeId& node, const ObservedNode& observed) const;
  // What the job holds of the node. A cluster manager's reservation takes nodes whole.
  Resources HeldBy(const JobRecord& job, const NodeId& node) const;
  // The node to ask for an image: the one that dumped it, or for a shared one any that is there.
  NodeId NodeWithImage(const CheckpointRecord& checkpoint, int rank, Tier tier) const;
  // It has measured how fast that is.
  bool HasSharedTier(const NodeId& node) const;
  // Its agent may still make it count, or has done so and needs it to tell how its task has ended.
  bool IsBeingWritten(const CheckpointRecord& checkpoint, int rank) const;
  // A rank's part of the newest image: what to expect of a job that was restored a moment ago and has not
  // been measured since.
  Bytes LastImage(const JobRecord& job) const;
  // What its tasks hold, and with it the image that is to be expected: all of it, and a rank's part.
  Bytes ImageOf(const JobRecord& job) const;
  Bytes ImageOf(const JobRecord& job, int rank) const;
  // From now until its image is durable, its GPUs' state included; 0: not known.
  Duration TimeToDump(const JobRecord& job, Tier tier) const;
  // Agents say that it cannot be, as it is now.
  bool CannotBeCheckpointed(const JobRecord& job) const;
  // Once it has left, to restore it from its newest image on nodes like its own; 0: not known, or it has
  // none.
  Duration TimeToRestore(const JobRecord& job) const;
  // To dump it to shared storage and restore it elsewhere; 0: not known.
  Duration TimeToMove(const JobRecord& job) const;

 private:
  // A job is started there. (To restore one may take long, and says nothing of starts if it fails.)
  bool IsTried(const NodeId& node) const;

  const ClusterState& state_;
};

}  // namespace siding
