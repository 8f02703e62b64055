// Orders of users and operators, and why each may be refused.
//
// Used under the engine's lock.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "controller/engine/decide/admission.h"
#include "controller/engine/decide/checkpoints.h"
#include "controller/engine/decide/recovery.h"
#include "controller/engine/engine.h"
#include "controller/engine/state/context.h"

namespace siding {

class Verbs {
 public:
  Verbs(const Context& c, Recovery& recovery, Checkpoints& checkpoints, const Admission& admission)
      : state_(c.state),
        policy_(c.policy),
        platform_(c.platform),
        cluster_(c.cluster),
        manager_(c.manager),
        accounts_(c.accounts),
        recorder_(c.recorder),
        limited_log_(c.limited_log),
        recovery_(recovery),
        checkpoints_(checkpoints),
        admission_(admission) {}

  // Whether the caller may see the job's existence, owner and state.
  bool MaySee(const Caller& caller, const JobRecord& job) const;
  // The job, if there is one and the caller may act on it. Counts as a request of the caller's.
  absl::StatusOr<const JobRecord*> Find(const Caller& caller, JobId id);
  // The job of the checkpoint, in the same way.
  absl::StatusOr<const JobRecord*> FindOwner(const Caller& caller, const CheckpointId& id);
  // A cluster manager gives the slots of a suspended job to others, and takes them back without asking for
  // room: with it only its operators suspend and resume.
  absl::Status MayFreeze(const Caller& caller, const JobRecord& job) const;
  absl::Status Resume(const Caller& caller, const JobRecord& job);
  // What begins the order, of a job that may be told so: also of one whose work is being saved while it runs
  // on, for afterwards.
  absl::StatusOr<JobMoved> Begin(const JobRecord& job, const HandOrder& order) const;
  // From the beginning. `running`: also one that runs or is suspended.
  absl::Status Restart(const Caller& caller, const JobRecord& job, bool running);
  // A job that waits, or is on its way off its nodes, gets none until it is released.
  absl::Status Hold(const Caller& caller, const JobRecord& job);
  absl::Status Release(const Caller& caller, const JobRecord& job);
  absl::Status Update(const Caller& caller, const JobRecord& job, const JobChange& change);
  absl::Status Kill(const JobRecord& job, const std::string& by);
  // What ends the job for good; none: it is being ended already.
  absl::StatusOr<std::optional<JobMoved>> End(const JobRecord& job, const std::string& by) const;
  // kNotFound if there is no such node.
  absl::Status IsKnown(const NodeId& node) const;
  absl::Status Cordon(const Caller& caller, const NodeId& node, bool cordoned);
  absl::Status DeleteCheckpoint(const Caller& caller, const CheckpointId& id);

 private:
  absl::Status TryAgain(const Caller& caller, const JobRecord& job);
  absl::Status EndToRestart(const Caller& caller, const JobRecord& job);
  absl::Status MayRaisePriority(const Caller& caller, const JobRecord& job, int priority) const;
  absl::Status MayChangeWalltime(const Caller& caller, const JobRecord& job, Duration walltime) const;
  absl::StatusOr<std::vector<NodeId>> TargetFor(const JobRecord& job, std::vector<NodeId> nodes) const;
  absl::Status MayBeSavedTo(const JobRecord& job, Tier tier) const;
  absl::Status MayLeaveAsItIs(const JobRecord& job) const;

  const ClusterState& state_;
  const Policy& policy_;
  const Platform& platform_;
  const ClusterView& cluster_;
  const ManagerView& manager_;
  const NodeAccounts& accounts_;
  Recorder& recorder_;
  LimitedLog& limited_log_;
  Recovery& recovery_;
  Checkpoints& checkpoints_;
  const Admission& admission_;
};

}  // namespace siding
