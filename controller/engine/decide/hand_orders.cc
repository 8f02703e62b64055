#include "controller/engine/decide/hand_orders.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/engine/state/predicates.h"

namespace siding {

absl::Status HandOrders::Give(const Caller& caller, const JobRecord& job, const HandOrder& order) {
  if (!IsSavedRunning(job)) return Begin(caller, job, order);
  SIDING_RETURN_IF_ERROR(verbs_.Begin(job, order).status());
  const Time until = std::max(clock_.Now(), job.current.predicted) + kOrderPatience;
  recorder_.Record(job.id, OrderWaits{true, order, until, caller.user, caller.is_operator, ""});
  return absl::OkStatus();
}

absl::Status HandOrders::Begin(const Caller& caller, const JobRecord& job, const HandOrder& order) {
  std::vector<CheckpointId> superseded;
  if (order.verb != HandVerb::kSuspend) {
    SIDING_ASSIGN_OR_RETURN(superseded, quota_.MakesRoomFor(caller, job));
  }
  SIDING_ASSIGN_OR_RETURN(JobMoved move, verbs_.Begin(job, order));
  recorder_.Move(job, std::move(move));
  quota_.GiveUpImages(superseded);
  return absl::OkStatus();
}

bool HandOrders::BeginWaiting(const JobRecord& job) {
  if (!job.waiting_order || (job.state != JobState::kRunning && job.state != JobState::kSuspended))
    return false;
  if (WithdrawLate(job)) return true;  // nobody decided anything meanwhile
  const OrderWaits waiting = *job.waiting_order;
  Caller caller;
  caller.user = waiting.by;
  caller.is_operator = waiting.by_operator;
  const absl::Status begun = Begin(caller, job, waiting.order);
  if (!begun.ok()) Withdraw(job, std::string(begun.message()));
  return true;
}

bool HandOrders::Withdraw(const Caller& caller, const JobRecord& job) {
  if (!job.waiting_order) return false;
  Withdraw(job, absl::StrCat("withdrawn by ", caller.user));
  return true;
}

bool HandOrders::WithdrawLate(const JobRecord& job) {
  if (!job.waiting_order || clock_.Now() < job.waiting_order->until) return false;
  Withdraw(job, "what it waits for has taken too long");
  return true;
}

void HandOrders::Withdraw(const JobRecord& job, std::string why) {
  OrderWaits withdrawn = *job.waiting_order;
  withdrawn.waits = false;
  withdrawn.why = std::move(why);
  recorder_.Record(job.id, std::move(withdrawn));
}

}  // namespace siding
