// Orders by hand to jobs that have nodes: suspend, checkpoint, vacate, migrate. One for a job whose work is
// being saved while it runs on waits until that has ended, well or badly, and is carried out then. As the job
// has run on, what has been saved will not do for one that takes it off its nodes: it is saved once more.
//
// Used under the engine's lock.
#pragma once

#include "controller/engine/decide/image_quota.h"
#include "controller/engine/decide/verbs.h"

namespace siding {

// So long after the end that is predicted for what is under way an order still waits for it.
inline constexpr Duration kOrderPatience = std::chrono::minutes(10);

class HandOrders {
 public:
  HandOrders(const Context& c, const Verbs& verbs, ImageQuota& quota)
      : clock_(c.clock), recorder_(c.recorder), verbs_(verbs), quota_(quota) {}

  // Begun, or recorded to be carried out later; a second one then takes the place of the first. The job's
  // next checkpoint is the order's, if it makes one.
  absl::Status Give(const Caller& caller, const JobRecord& job, const HandOrder& order);
  // The order that the job waits with begins if it can, and is withdrawn if it will not be able to. True:
  // something was recorded.
  bool BeginWaiting(const JobRecord& job);
  // False: the job waits with none.
  bool Withdraw(const Caller& caller, const JobRecord& job);
  // It has waited for too long. True: it is withdrawn.
  bool WithdrawLate(const JobRecord& job);

 private:
  absl::Status Begin(const Caller& caller, const JobRecord& job, const HandOrder& order);
  void Withdraw(const JobRecord& job, std::string why);

  const Clock& clock_;
  Recorder& recorder_;
  const Verbs& verbs_;
  ImageQuota& quota_;
};

}  // namespace siding
