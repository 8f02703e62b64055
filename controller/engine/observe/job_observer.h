// What agents report of a job's tasks, turned into events of the lifecycle.
//
// Observe() compares two things: the state that is recorded for the job, and the phase in which each of its
// ranks was seen last. It looks at all that is known, never at a single message, so the order in which
// reports arrive does not matter, and the next report replaces one that was lost. Each Observe...() handles
// one state, or one kind of failure that can happen in any state. The first that records something ends the
// round, and the engine calls Observe() again until nothing is recorded any more.
//
// A job of several ranks moves on when all ranks have done so, and falls back when one cannot. Failures are
// counted by the operation's number: an agent reports the last operation that failed, and attempts of one
// order have consecutive numbers (OpOf).
//
// Used under the engine's lock.
#pragma once

#include "controller/engine/decide/recovery.h"
#include "controller/engine/observe/managed_tasks.h"
#include "controller/engine/observe/node_faults.h"
#include "controller/engine/state/context.h"

namespace siding {

class JobObserver {
 public:
  JobObserver(const Context& c, ManagedTasks& tasks, Recovery& recovery, NodeFaults& faults)
      : state_(c.state),
        observed_(c.observed),
        clock_(c.clock),
        startup_(c.startup),
        cluster_(c.cluster),
        manager_(c.manager),
        accounts_(c.accounts),
        recorder_(c.recorder),
        agenda_(c.agenda),
        tasks_(tasks),
        recovery_(recovery),
        faults_(faults) {}

  // Records what follows for this job. True: something was recorded, and it is to be observed again.
  bool Observe(const JobRecord& job);

 private:
  bool ObserveCopied(const JobRecord& job);
  bool ObserveLostImages(const JobRecord& job);
  bool ObserveReturnedNodes(const JobRecord& job);
  bool ObserveStart(const JobRecord& job);
  std::string WhyNotInItsNetwork(const JobRecord& job, int rank, const TaskSeen& seen) const;
  bool ObserveExits(const JobRecord& job);
  bool WasEndedUnheard(const JobRecord& job, const v1::TaskReport& report) const;
  bool ObserveLostTasks(const JobRecord& job);
  bool ObserveGpuState(const JobRecord& job);
  bool ObserveFrozen(const JobRecord& job);
  bool ObserveFreeze(const JobRecord& job);
  bool ObserveEndedRank(const JobRecord& job);
  bool ObserveDump(const JobRecord& job);
  void NoteFailure(const JobRecord& job, int rank);
  bool ObserveCommit(const JobRecord& job);
  void DumpFailed(const JobRecord& job, int rank, const std::string& why);
  void NoteTierFailure(const JobRecord& job, int rank);
  void NoteImagesWritten(const JobRecord& job);
  bool ObserveSave(const JobRecord& job);
  bool ObserveKill(const JobRecord& job);
  bool ObserveKillRefused(const JobRecord& job);

  const ClusterState& state_;
  ObservedState& observed_;
  const Clock& clock_;
  const StartUp& startup_;
  const ClusterView& cluster_;
  const ManagerView& manager_;
  const NodeAccounts& accounts_;
  Recorder& recorder_;
  Agenda& agenda_;
  ManagedTasks& tasks_;
  Recovery& recovery_;
  NodeFaults& faults_;
};

}  // namespace siding
