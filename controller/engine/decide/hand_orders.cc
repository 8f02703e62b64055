#include "controller/engine/decide/hand_orders.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/engine/state/predicates.h"

namespace siding {

absl::Status HandOrders::Give(const Caller& caller, const JobRecord& job, const HandOrder& order) {
  SIDING_RETURN_IF_ERROR(MayTakeBack(caller, job));
  if (!IsSavedRunning(job)) return Begin(caller, job, order);
  SIDING_RETURN_IF_ERROR(verbs_.Begin(job, order).status());
  Replace(caller, job, order);
  const Time until = std::max(clock_.Now(), job.current.predicted) + kOrderPatience;
  recorder_.Record(job.id, OrderWaits{true, order, until, caller.user, caller.is_operator, ""});
  return absl::OkStatus();
}

absl::Status HandOrders::MayTakeBack(const Caller& caller, const JobRecord& job) const {
  if (!job.waiting_order || !job.waiting_order->by_operator || caller.is_operator) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "job ", job.id.value(), " waits with a ", ToString(job.waiting_order->order.verb), " of an operator, ",
      job.waiting_order->by, ": only operators take it back or replace it"));
}

// Whoever has given the order that waits is told.
void HandOrders::Replace(const Caller& caller, const JobRecord& job, const HandOrder& order) {
  if (!job.waiting_order || job.waiting_order->order == order) return;
  Withdraw(job, absl::StrCat(ToString(order.verb), ", ", AskedForBy(caller.user), ", takes its place"),
           caller.user);
}

absl::Status HandOrders::Begin(const Caller& caller, const JobRecord& job, const HandOrder& order) {
  std::vector<CheckpointId> superseded;
  if (order.verb != HandVerb::kSuspend) {
    SIDING_ASSIGN_OR_RETURN(superseded, quota_.MakesRoomFor(caller, job));
  }
  SIDING_ASSIGN_OR_RETURN(JobMoved move, verbs_.Begin(job, order));
  Replace(caller, job, order);
  move.by = caller.user;
  move.reason = absl::StrCat(order.verb == HandVerb::kMigrate ? "migration " : "", AskedForBy(caller.user));
  recorder_.Move(job, std::move(move));
  quota_.GiveUpImages(superseded);
  return absl::OkStatus();
}

void HandOrders::BeginWaiting() {
  std::vector<const JobRecord*> saved;
  for (const auto& [id, job] : state_.index.with_orders()) {
    if (job->state == JobState::kRunning || job->state == JobState::kSuspended) saved.push_back(job);
  }
  for (const JobRecord* job : saved) BeginWaiting(*job);
}

void HandOrders::BeginWaiting(const JobRecord& job) {
  if (WithdrawLate(job)) return;  // nobody decided anything meanwhile
  if (walltime_.IsOverdue(job)) {
    walltime_.EndOverdue(job);
    return;
  }
  const OrderWaits waiting = *job.waiting_order;
  // It is saved when it leaves, and must not be busy with another image then.
  const Duration saving = cluster_.TimeToDump(job, waiting.order.tier);
  if (waiting.order.verb == HandVerb::kCheckpoint && checkpoints_.LeavesWithin(job, saving)) return;
  Caller caller;
  caller.uid = job.spec.uid;
  caller.user = waiting.by;
  caller.is_operator = waiting.by_operator;
  const absl::Status begun = Begin(caller, job, waiting.order);
  if (!begun.ok()) Withdraw(job, std::string(begun.message()));
}

absl::StatusOr<bool> HandOrders::Withdraw(const Caller& caller, const JobRecord& job) {
  if (!job.waiting_order) return false;
  SIDING_RETURN_IF_ERROR(MayTakeBack(caller, job));
  Withdraw(job, absl::StrCat("withdrawn by ", caller.user), caller.user);
  return true;
}

bool HandOrders::WithdrawLate(const JobRecord& job) {
  if (!job.waiting_order || clock_.Now() < job.waiting_order->until) return false;
  Withdraw(job, "what it waits for has taken too long");
  return true;
}

void HandOrders::Withdraw(const JobRecord& job, std::string why, const std::string& by) {
  OrderWaits withdrawn = *job.waiting_order;
  withdrawn.waits = false;
  withdrawn.by = by;
  withdrawn.why = std::move(why);
  recorder_.Record(job.id, std::move(withdrawn));
}

}  // namespace siding
