#include "controller/engine/act/job_orders.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "controller/engine/state/image_copies.h"
#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"
#include "controller/wire/wire.h"

namespace siding {
namespace {

// After an order to dump, an agent undoes it by itself when this much time has passed on top of three times
// the predicted time.
constexpr Duration kDumpPatience = std::chrono::seconds(60);
// The least time that a drain gets to lock processes: with less it would only disturb the job.
constexpr Duration kLeastLockPatience = std::chrono::seconds(1);

// A dump that is under way was ordered earlier, perhaps after the copy of the journal was made that is in use
// now.
bool IsEarlierDump(const JobRecord& job, const v1::TaskReport& report) {
  if (report.phase() != v1::PREPARED && report.phase() != v1::DUMPING) return false;
  switch (job.state) {
    case JobState::kKilling:
      return false;  // it ends with the task
    case JobState::kDumping:
    case JobState::kCommitting:
      return report.op() != 0 && !IsOfOrder(job, report.op());
    default:
      return true;
  }
}

// At once after a first failure, and with growing pauses after more: a disk that is full may have room soon.
// As if each attempt took no time, so that slow ones are not followed by pauses.
Time DumpAgainAt(const JobRecord& job, int64_t failed_op) {
  Time at = job.state_since;
  for (int64_t failures = 1; failures < failed_op - OpOf(job) + 1 && failures < kOpsPerOrder; ++failures)
    at += PauseAfter(static_cast<int>(failures));
  return at;
}

}  // namespace

void JobOrders::Act(const JobRecord& job) {
  if (!HoldsNodes(job.state) || IsKnownFromQueueOnly(job)) return;
  const int64_t op = OpOf(job);
  const auto commit =
      job.state == JobState::kCommitting ? std::optional(cluster_.CommitOf(job)) : std::nullopt;
  const bool dumps_again = commit && !commit->failed;
  // What is the same for all ranks is asked once: there may be thousands.
  const bool is_dumped = job.state == JobState::kDumping || dumps_again;
  const bool holds_together = cluster_.HoldsTogether(job);
  const bool together = job.state == JobState::kDumping && (DumpsTogether(job) || holds_together);
  const v1::DumpBarrier may_pass = together ? cluster_.BarrierOf(job) : v1::BARRIER_NONE;
  // Who stands still would wait for one that cannot be told.
  const bool may_stop = together && cluster_.AreHeard(job);
  // Some write much of earlier ones again.
  const Duration whole =
      is_dumped && job.current.keep_running ? cluster_.TimeToDump(job, job.current.tier) : Duration(0);
  const Duration lock_patience = LockPatience(job);
  bool is_undone = false;
  for (int rank : cluster_.LiveRanks(job)) {
    const TaskSeen seen = cluster_.Seen(job, rank);
    if (!seen.connected) continue;
    v1::ToAgent command;
    command.set_op(op);
    bool send = true;
    const v1::TaskPhase phase = seen.phase();
    const auto dump = [&](int64_t dump_op) {
      command.set_op(dump_op);
      v1::Dump& dump = *command.mutable_dump();
      dump.set_checkpoint(job.current.checkpoint.value());
      dump.set_tier(ToProto(job.current.tier));
      dump.set_keep_running(job.current.keep_running);
      dump.set_others_follow(job.current.others_follow);
      dump.set_together(together);
      // Once one has left nothing can be undone, and it is for the others to follow.
      const bool has_left = commit && commit->has_left;
      dump.set_leaves_together(!job.current.keep_running && job.nodes.size() > 1 && !has_left);
      // Once the image counts, a rank that has to be dumped again is not made to wait.
      const bool is_told = holds_together && seen.report.failed_op() >= op;  // its peers stand still
      if (job.state == JobState::kDumping && !is_told) dump.set_notice_us(job.current.notice.count());
      for (const auto& [exited, code] : job.exited) dump.add_exited(exited);
      const Duration predicted = std::max(whole, job.current.predicted - job.state_since);
      // No request waits for the image of a job that is parked in RAM.
      if (!job.in_ram || KeepsItsNodes(job)) dump.set_patience_us((3 * predicted + kDumpPatience).count());
      dump.set_lock_patience_us(lock_patience.count());
    };
    // Running under an operation: it has been told that it will be frozen. A kill does not wait for that.
    const bool told = phase == v1::RUNNING && seen.report.op() != 0 && job.state != JobState::kKilling;
    // It begins, and is to be ended as soon as its manager does: that has been withdrawn.
    const bool begins_after_all = IsBeginning(job.state) && !OwnershipOf(job.spec).siding_starts &&
                                  IsLive(phase) && IsAfterItsStart(job, seen.report.op());
    const bool as_ordered = seen.report.op() >= op && seen.report.op() < op + kOpsPerOrder;
    // What an earlier order still holds is undone.
    if (IsEarlierDump(job, seen.report) || begins_after_all ||
        (told && !(job.state == JobState::kSuspending && as_ordered))) {
      if (seen.report.op() != 0) command.set_op(seen.report.op());
      command.mutable_abort();
      is_undone = true;
      orders_.Send(job.nodes[rank], ClusterView::TaskOf(job, rank), std::move(command));
      continue;
    }
    switch (job.state) {
      case JobState::kStarting:
      case JobState::kRestoring:
        send = !seen.known && OwnershipOf(job.spec).siding_starts && !job.from_copy;
        PutStart(job, rank, command);
        break;
      case JobState::kRunning:
      case JobState::kResuming:
        send =
            phase == v1::SUSPENDED && !CannotThaw(job, seen.report) && MayThaw(job);  // see ObserveFrozen()
        command.set_op(std::max(op, seen.report.failed_op() + 1));
        command.mutable_resume();
        break;
      case JobState::kSuspending:
      case JobState::kSuspended:
        send = phase == v1::RUNNING;
        // A task that has had its notice gets no second one.
        if (seen.report.failed_op() < op)
          command.mutable_suspend()->set_notice_us(job.current.notice.count());
        command.set_op(std::max(op, seen.report.failed_op() + 1));
        command.mutable_suspend()->set_lock_patience_us(lock_patience.count());
        break;
      case JobState::kDumping:
        if (const v1::DumpBarrier at = seen.report.barrier(); phase == v1::DUMPING) {
          send = at != v1::BARRIER_NONE && at <= may_pass && !seen.report.runs_on() &&
                 (may_stop || at != v1::BARRIER_STOP);
          command.set_op(seen.report.op());
          command.mutable_pass_barrier()->set_barrier(at);
          break;
        }
        send = (phase == v1::RUNNING || phase == v1::SUSPENDED) && (may_stop || !holds_together);
        dump(std::max(op, seen.report.failed_op() + 1));
        break;
      case JobState::kCommitting:
        if (phase == v1::PREPARED) {
          if (seen.report.op() != 0) command.set_op(seen.report.op());
          const bool waits = seen.report.barrier() == v1::BARRIER_LEAVE;
          if (waits && commit->may_leave) {
            command.mutable_pass_barrier()->set_barrier(v1::BARRIER_LEAVE);
          } else if (waits && commit->failed) {
            command.mutable_abort();
          } else {
            send = !waits;
            command.mutable_commit();
          }
        } else {
          // Its agent went away before it had left, or could not record the commit: this rank is dumped
          // again.
          send = dumps_again && IsToBeDumpedAgain(job, seen.report) &&
                 clock_.Now() >= DumpAgainAt(job, seen.report.failed_op());
          dump(std::max(op, seen.report.failed_op()) + 1);
        }
        break;
      case JobState::kSaving:
        if (phase == v1::SUSPENDED) {  // a freeze that had been given up has succeeded late
          command.set_op(std::max(op, seen.report.failed_op() + 1));
          command.mutable_resume();
          break;
        }
        send = phase == v1::RUNNING && seen.report.committed_op() < op;
        if (job.spec.app) *command.mutable_save()->mutable_app() = ToProto(*job.spec.app);
        command.mutable_save()->set_keep_running(job.current.keep_running);
        break;
      case JobState::kKilling:
        send = IsLive(phase) || !seen.known;
        command.mutable_kill()->set_grace_us(job.spec.kill_grace.count());
        break;
      default:
        send = false;
    }
    if (send) orders_.Send(job.nodes[rank], ClusterView::TaskOf(job, rank), std::move(command));
  }
  // Of a cluster manager's job see StepNetworks.
  if (IsBeginning(job.state) && job.spec.keep_connections && !is_undone &&
      OwnershipOf(job.spec).siding_starts)
    NetworkJoins(cluster_, orders_).Join(NetworkRanks(job));
}

std::vector<NetworkRank> JobOrders::NetworkRanks(const JobRecord& job) const {
  std::vector<NetworkRank> ranks;
  for (const int rank : cluster_.LiveRanks(job)) {
    const v1::TaskReport& report = cluster_.Seen(job, rank).report;
    // One that has ended has not been recorded as exited yet, or will be the end of this start.
    if (report.phase() != v1::RUNNING && report.phase() != v1::RESTORING) return {};
    ranks.push_back({rank, job.nodes[rank], ClusterView::TaskOf(job, rank), OpOf(job), &report});
  }
  return ranks;
}

// From the beginning, from what the program has saved, or from an image.
void JobOrders::PutStart(const JobRecord& job, int rank, v1::ToAgent& command) const {
  if (job.state == JobState::kRestoring && job.current.checkpoint != CheckpointId()) {
    const CheckpointRecord& checkpoint = state_.checkpoints.at(job.current.checkpoint);
    v1::Restore& restore = *command.mutable_restore();
    *restore.mutable_spec() = ToProto(job.spec);
    restore.set_checkpoint(checkpoint.id.value());
    restore.set_tier(ReadsCopy(state_, checkpoint, job.nodes[rank], rank) ? v1::LOCAL
                                                                          : ToProto(checkpoint.tier));
    restore.set_image_incarnation(checkpoint.incarnation);
    restore.set_image_digest(checkpoint.DigestOf(rank));
    return;
  }
  *command.mutable_launch()->mutable_spec() = ToProto(job.spec);
  if (job.state == JobState::kRestoring) command.mutable_launch()->set_restart_after_save(true);
}

// What the deadline leaves now beyond the time that was predicted for all the rest. 0, as long as usual,
// where there is no deadline that could be met.
Duration JobOrders::LockPatience(const JobRecord& job) const {
  const auto request = state_.unfinished.find(job.current.request);
  if (request == state_.unfinished.end() || request->second->spec.kind != JobKind::kOnDemand ||
      job.spec.per_node.gpus == 0)
    return Duration(0);
  Duration lock{0};
  for (int rank : cluster_.LiveRanks(job))
    lock = std::max(lock, Duration(cluster_.Seen(job, rank).report.gpu_lock_us()));
  const Duration rest = std::max(Duration(0), job.current.predicted - job.state_since - lock);
  const Time start_by = request->second->spec.start_by;
  if (job.current.predicted > start_by) return Duration(0);
  const Duration left = start_by - policy_.margin - clock_.Now() - rest;
  return left <= Duration(0) ? Duration(0) : std::max(kLeastLockPatience, left);
}

// Not before it is known which job has its place now, and that is recorded.
bool JobOrders::MayThaw(const JobRecord& job) const {
  if (!OwnershipOf(job.spec).siding_makes_room) return true;
  return job.state == JobState::kResuming &&
         (!job.from_copy || (!startup_.IsCatchingUp(clock_.Now()) && accounts_.HasRoomToContinue(job)));
}

}  // namespace siding
