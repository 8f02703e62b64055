#include "controller/platform/slurm/cleanup.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/platform/slurm/marks.h"

namespace siding::slurm {
namespace {

bool IsOurs(const std::string& reservation) { return absl::StartsWith(reservation, kReservationPrefix); }

CleanupStep StepOf(const JobRepair& repair) {
  CleanupStep step;
  step.target = absl::StrCat("job ", repair.job.value());
  if (!repair.out_of.empty()) step.actions.push_back("out of reservation " + repair.out_of);
  if (repair.unpin) step.actions.push_back("free to run on any node");
  if (repair.release) step.actions.push_back("released");
  step.actions.push_back("mark removed");
  return step;
}

// The mark goes last: as long as something is left to do, it is found again.
absl::Status Repair(Client& client, const JobRepair& repair) {
  JobChange where;
  if (repair.unpin) where.only_on.emplace();
  if (!repair.out_of.empty()) where.reservation.emplace();
  if (where.only_on || where.reservation) SIDING_RETURN_IF_ERROR(client.Update(repair.job, where));
  if (repair.release) SIDING_RETURN_IF_ERROR(client.Do(repair.job, Verb::kRelease));
  JobChange mark;
  mark.admin_comment = repair.comment;
  return client.Update(repair.job, mark);
}

}  // namespace

CleanupPlan PlanCleanup(const std::vector<QueueJob>& jobs, const std::vector<Reservation>& reservations) {
  CleanupPlan plan;
  for (const QueueJob& job : jobs) {
    const std::optional<Mark> mark = MarkOf(job.admin_comment);
    const bool waits = job.phase == JobPhase::kPending;
    JobRepair repair;
    repair.job = job.id;
    repair.release = waits && job.held && mark && mark->held;
    repair.unpin = waits && !job.only_on.empty() && mark && mark->pinned;
    if (waits && IsOurs(job.reservation)) repair.out_of = job.reservation;
    repair.comment = WithMark(job.admin_comment, std::nullopt);
    const bool left = mark && (mark->held || mark->pinned) && job.phase != JobPhase::kEnded;
    if (left || !repair.out_of.empty()) plan.jobs.push_back(std::move(repair));
  }
  for (const Reservation& reservation : reservations) {
    if (IsOurs(reservation.name)) plan.reservations.push_back(reservation.name);
  }
  return plan;
}

absl::StatusOr<std::vector<CleanupStep>> CleanUp(Client& client, bool dry_run) {
  SIDING_ASSIGN_OR_RETURN(const auto jobs, client.Jobs());
  SIDING_ASSIGN_OR_RETURN(const auto reservations, client.Reservations());
  const CleanupPlan plan = PlanCleanup(*jobs, *reservations);
  std::vector<CleanupStep> steps;
  for (const JobRepair& repair : plan.jobs) {
    steps.push_back(StepOf(repair));
    if (!dry_run) steps.back().status = Repair(client, repair);
  }
  for (const std::string& name : plan.reservations) {
    steps.push_back({"reservation " + name, {"deleted"}, absl::OkStatus()});
    if (!dry_run) steps.back().status = client.DeleteReservation(name);
  }
  return steps;
}

}  // namespace siding::slurm
