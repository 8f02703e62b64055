// Orders by hand to jobs that have nodes: suspend, checkpoint, vacate, migrate. One for a job whose work is
// being saved while it runs on waits until that has ended, well or badly, and is carried out then. As the job
// has run on, what has been saved will not do for one that takes it off its nodes: it is saved once more.
//
// Used under the engine's lock.
#pragma once

#include "controller/engine/decide/checkpoints.h"
#include "controller/engine/decide/image_quota.h"
#include "controller/engine/decide/verbs.h"
#include "controller/engine/decide/walltime.h"

namespace siding {

// So long after the end that is predicted for what is under way an order still waits for it.
inline constexpr Duration kOrderPatience = std::chrono::minutes(10);

class HandOrders {
 public:
  HandOrders(const Context& c, const Verbs& verbs, ImageQuota& quota, const Checkpoints& checkpoints,
             Walltime& walltime)
      : state_(c.state),
        clock_(c.clock),
        cluster_(c.cluster),
        recorder_(c.recorder),
        verbs_(verbs),
        quota_(quota),
        checkpoints_(checkpoints),
        walltime_(walltime) {}

  // Begun, or recorded to be carried out later; a second one then takes the place of the first. The job's
  // next checkpoint is the order's, if it makes one. kPermissionDenied: an operator's order waits, and the
  // caller is none.
  absl::Status Give(const Caller& caller, const JobRecord& job, const HandOrder& order);
  // Orders of jobs that are saved begin, or are withdrawn if they will not be able to. To be called when the
  // steps of plans that are due have been ordered: those go first, and so does the end of a job's time.
  void BeginWaiting();
  // False: the job waits with none. kPermissionDenied: as above.
  absl::StatusOr<bool> Withdraw(const Caller& caller, const JobRecord& job);
  // It has waited for too long. True: it is withdrawn.
  bool WithdrawLate(const JobRecord& job);

 private:
  absl::Status MayTakeBack(const Caller& caller, const JobRecord& job) const;
  void Replace(const Caller& caller, const JobRecord& job, const HandOrder& order);
  void BeginWaiting(const JobRecord& job);
  absl::Status Begin(const Caller& caller, const JobRecord& job, const HandOrder& order);
  // `by`: who has done so; "": nobody.
  void Withdraw(const JobRecord& job, std::string why, const std::string& by = "");

  const ClusterState& state_;
  const Clock& clock_;
  const ClusterView& cluster_;
  Recorder& recorder_;
  const Verbs& verbs_;
  ImageQuota& quota_;
  const Checkpoints& checkpoints_;
  Walltime& walltime_;
};

}  // namespace siding
