// Act(): for every job, what its recorded state asks for and its tasks have not been seen to do. Idempotent:
// an agent that gets a command again reports again.
#include <algorithm>

#include "controller/engine/impl.h"
#include "controller/wire/wire.h"

namespace siding {
namespace {

// A command that has changed nothing for so long is sent again; the agent may have dropped it.
constexpr Duration kSendAgain = std::chrono::seconds(5);
// Large images take their time to go away.
constexpr Duration kDeleteAgain = std::chrono::minutes(1);
// After an order to dump, an agent undoes it by itself when this much time has passed on top of three times
// the predicted time.
constexpr Duration kDumpPatience = std::chrono::seconds(60);
// The least that a drain is given to lock processes: the job is to be disturbed for something.
constexpr Duration kLeastLockPatience = std::chrono::seconds(1);
constexpr int64_t kOpsPerOrder = 100;  // room for attempts
constexpr int64_t kOpsPerIncarnation = 1000000;

// A dump that is under way then was ordered before, perhaps before the journal was copied.
bool WantsNoDump(JobState state) {
  return IsBeginning(state) || state == JobState::kRunning || state == JobState::kResuming ||
         state == JobState::kSuspending || state == JobState::kSuspended;
}

}  // namespace

int64_t Engine::Impl::OpOf(const JobRecord& job) const {
  return job.incarnation * kOpsPerIncarnation + job.order * kOpsPerOrder;
}

// What the deadline leaves now beyond the time that was predicted for all the rest. 0, as long as usual,
// where there is no deadline that could be met.
Duration Engine::Impl::LockPatience(const JobRecord& job) const {
  const auto request = state_.unfinished.find(job.current.request);
  if (request == state_.unfinished.end() || request->second->spec.kind != JobKind::kOnDemand ||
      job.spec.per_node.gpus == 0)
    return Duration(0);
  Duration lock{0};
  for (int rank : LiveRanks(job)) lock = std::max(lock, Duration(Seen(job, rank).report.gpu_lock_us()));
  const Duration rest = std::max(Duration(0), job.current.predicted - job.state_since - lock);
  const Time start_by = request->second->spec.start_by;
  if (job.current.predicted > start_by) return Duration(0);
  const Duration left = start_by - policy_.margin - clock_.Now() - rest;
  return left <= Duration(0) ? Duration(0) : std::max(kLeastLockPatience, left);
}

void Engine::Impl::Send(const NodeId& node, const TaskId& task, v1::ToAgent command) {
  Sent& sent = sent_[{task, node}];
  const Time now = clock_.Now();
  const int kind = static_cast<int>(command.what_case());
  if (sent.op == command.op() && sent.kind == kind && now - sent.at < kSendAgain) return;
  sent = {command.op(), kind, now};
  command.mutable_task()->set_job(task.job.value());
  command.mutable_task()->set_incarnation(task.incarnation);
  command.mutable_task()->set_rank(task.rank);
  Command(node, std::move(command));
}

// From the beginning, from what the program has saved, or from an image.
void Engine::Impl::PutStart(const JobRecord& job, v1::ToAgent& command) const {
  if (job.state == JobState::kRestoring && job.current.checkpoint != CheckpointId()) {
    const CheckpointRecord& checkpoint = state_.checkpoints.at(job.current.checkpoint);
    v1::Restore& restore = *command.mutable_restore();
    *restore.mutable_spec() = ToProto(job.spec);
    restore.set_checkpoint(checkpoint.id.value());
    restore.set_tier(ToProto(checkpoint.tier));
    restore.set_image_incarnation(checkpoint.incarnation);
    return;
  }
  *command.mutable_launch()->mutable_spec() = ToProto(job.spec);
  if (job.state == JobState::kRestoring) command.mutable_launch()->set_restart_after_save(true);
}

void Engine::Impl::ActOnJob(JobRecord& job) {
  if (!HoldsNodes(job.state) || IsSeenInQueueOnly(job)) return;
  const int64_t op = OpOf(job);
  for (int rank : LiveRanks(job)) {
    const TaskSeen seen = Seen(job, rank);
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
      // Once the image counts, a rank that has to be dumped again is not made to wait.
      if (job.state == JobState::kDumping) dump.set_notice_us(job.current.notice.count());
      const Duration predicted = std::max(Duration(0), job.current.predicted - job.state_since);
      // Nobody waits for the image of a job that is parked in RAM.
      if (!job.in_ram) dump.set_patience_us((3 * predicted + kDumpPatience).count());
      dump.set_lock_patience_us(LockPatience(job).count());
    };
    const bool being_dumped = phase == v1::PREPARED || phase == v1::DUMPING;
    // Running under an operation: it has been told that it will be frozen. A kill does not wait for that.
    const bool told = phase == v1::RUNNING && seen.report.op() != 0 && job.state != JobState::kKilling;
    const bool as_ordered = seen.report.op() >= op && seen.report.op() < op + kOpsPerOrder;
    // Whatever still holds the task from before is undone.
    if ((being_dumped && WantsNoDump(job.state)) ||
        (told && !(job.state == JobState::kSuspending && as_ordered))) {
      if (seen.report.op() != 0) command.set_op(seen.report.op());
      command.mutable_abort();
      Send(job.nodes[rank], TaskOf(job, rank), std::move(command));
      continue;
    }
    switch (job.state) {
      case JobState::kStarting:
      case JobState::kRestoring:
        send = !seen.known && !IsHosted(job) && !job.from_copy;
        PutStart(job, command);
        break;
      case JobState::kRunning:
      case JobState::kResuming:
        send = phase == v1::SUSPENDED && MayThaw(job);  // see JudgeFrozen()
        command.set_op(std::max(op, seen.report.failed_op() + 1));
        command.mutable_resume();
        break;
      case JobState::kSuspending:
      case JobState::kSuspended:
        send = phase == v1::RUNNING;
        // One that has had its notice is not told again.
        if (seen.report.failed_op() < op)
          command.mutable_suspend()->set_notice_us(job.current.notice.count());
        command.set_op(std::max(op, seen.report.failed_op() + 1));
        command.mutable_suspend()->set_lock_patience_us(LockPatience(job).count());
        break;
      case JobState::kDumping:
        send = phase == v1::RUNNING || phase == v1::SUSPENDED;
        dump(std::max(op, seen.report.failed_op() + 1));
        break;
      case JobState::kCommitting:
        if (phase == v1::PREPARED) {
          if (seen.report.op() != 0) command.set_op(seen.report.op());
          command.mutable_commit();
        } else {
          // Its agent went away between the dump and the commit: this rank is dumped again.
          const bool whole = phase == v1::RUNNING || phase == v1::SUSPENDED;
          send = whole && seen.report.committed_op() < op;
          dump(std::max(op, seen.report.failed_op()) + 1);
        }
        break;
      case JobState::kSaving:
        if (phase == v1::SUSPENDED) {  // a freeze that had been given up came through after all
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
    if (send) Send(job.nodes[rank], TaskOf(job, rank), std::move(command));
  }
}

bool Engine::Impl::IsWanted(const JobRecord& job, const NodeId& node, const TaskId& task) const {
  // A cluster manager's job may have more tasks than those that stand for it.
  if (IsHosted(job)) return HoldsNodes(job.state) && task.incarnation == job.incarnation;
  return IsPlacedOn(node, task);
}

bool Engine::Impl::IsLeftAlone(const JobRecord& job, const ObservedTask& task) const {
  const bool later = IdOf(task.report).incarnation > job.incarnation;
  // A cluster manager ends its tasks itself; what siding does not know of may be somebody's work.
  if (IsHosted(job) || task.report.has_spec()) return later || IsLive(task.report.phase());
  // Started after the journal was copied: the job may be found there yet.
  return later && job.from_copy && IsCatchingUp();
}

// Tasks that no recorded state asks for: of another incarnation, somewhere else than their job has been
// placed, or of a job that has left. A task of a job that the journal does not know is left alone: it is
// somebody's work, and perhaps the journal is wrong.
void Engine::Impl::ActOnStrays() {
  for (const auto& [node, tasks] : state_.observed_tasks) {
    if (!IsConnected(node)) continue;
    std::vector<TaskId> forgotten;
    for (const auto& [id, task] : tasks) {
      auto found = state_.jobs.find(id.job);
      if (found == state_.jobs.end()) {
        LetGo(node, id, task.report);
        continue;
      }
      const JobRecord& job = found->second;
      if (IsWanted(job, node, id)) continue;
      HoldBackBeside(id, task.report.phase());
      if (IsLeftAlone(job, task)) continue;
      if (IsLive(task.report.phase())) {
        EndStray(node, id, OpOf(job) + kOpsPerOrder - 1);
      } else if (!IsLeftTask(job, node, id)) {
        v1::ToAgent command;
        command.set_op(OpOf(job) + kOpsPerOrder - 1);
        command.mutable_forget();
        Send(node, id, std::move(command));
        forgotten.push_back(id);
      }
    }
    // The agent sends nothing in answer to Forget; were it lost, the next Hello would bring the task back.
    for (const TaskId& id : forgotten) {
      Touch(node);
      auto& there = state_.observed_tasks[node];
      const auto task = there.find(id);
      if (task == there.end()) continue;
      size_t& kept = state_.observed_nodes[node].kept_bytes;
      kept -= std::min(kept, task->second.report.ByteSizeLong());
      there.erase(task);
      sent_.erase({id, node});
    }
  }
}

void Engine::Impl::EndStray(const NodeId& node, const TaskId& task, int64_t op) {
  v1::ToAgent command;
  command.set_op(op);
  command.mutable_kill()->set_grace_us(0);
  Send(node, task, std::move(command));
}

bool Engine::Impl::IsLeftTask(const JobRecord& job, const NodeId& node, const TaskId& task) {
  return !IsTerminal(job.state) && task.incarnation == job.incarnation &&
         std::find(job.left_on.begin(), job.left_on.end(), node) != job.left_on.end();
}

// Of jobs that are to start again: an agent that knows nothing of the task says so when it is told to end it,
// and it comes behind an order to start it that may still be on its way.
void Engine::Impl::ActOnLeftTasks() {
  for (const auto& [id, job] : state_.index.waiting()) {
    if (IsHosted(*job) || job->left_on.empty()) continue;
    for (int rank = 0; rank < static_cast<int>(job->last_nodes.size()); ++rank) {
      const NodeId& node = job->last_nodes[rank];
      const TaskId task = TaskOf(*job, rank);
      if (!IsLeftTask(*job, node, task) || !IsConnected(node)) continue;
      if (!state_.observed_tasks[node].contains(task)) EndStray(node, task, OpOf(*job) + kOpsPerOrder - 1);
    }
  }
}

// Its job ends, and nothing else remembers that it was to be started. A controller that is started anew need
// not know: its agents have read every order of the one before when they say hello.
void Engine::Impl::NoteStartsOf(const JobRecord& job) {
  if (IsHosted(job) || !IsBeginning(job.state)) return;
  for (int rank : LiveRanks(job)) {
    const TaskSeen seen = Seen(job, rank);
    if (seen.connected && !seen.known) may_start_[job.nodes[rank]].insert(TaskOf(job, rank));
  }
}

// An agent that has heard nothing of them says so.
void Engine::Impl::EndStarts() {
  for (const auto& [node, tasks] : may_start_) {
    for (const TaskId& id : tasks) {
      const auto job = state_.jobs.find(id.job);
      if (job != state_.jobs.end()) EndStray(node, id, OpOf(job->second) + kOpsPerOrder - 1);
    }
  }
}

NodeId Engine::Impl::NodeWithImage(const CheckpointRecord& checkpoint, int rank) const {
  const NodeId& own = checkpoint.nodes[rank];
  if (checkpoint.tier == Tier::kLocal || IsHeard(own)) return own;
  for (const auto& [other, observed] : state_.observed_nodes) {
    if (IsHeard(other)) return other;
  }
  return own;
}

// Its agent may still make it count, or has done so and needs it to tell how its task has ended.
bool Engine::Impl::IsBeingWritten(const CheckpointRecord& checkpoint, int rank) const {
  const NodeId& node = checkpoint.nodes[rank];
  const TaskId id{checkpoint.job, checkpoint.incarnation, checkpoint.first_rank + rank};
  const ObservedTask* task = TaskOn(node, id);
  if (task == nullptr) {
    // A controller that has only just begun has not heard of it yet.
    const JobRecord& job = state_.jobs.at(checkpoint.job);
    return !IsConnected(node) && (IsPlacedOn(node, id) || IsLeftTask(job, node, id));
  }
  const v1::TaskPhase phase = task->report.phase();
  return phase == v1::DUMPING || phase == v1::PREPARED;
}

void Engine::Impl::ActOnDeletions() {
  const Time now = clock_.Now();
  for (const CheckpointId& id : state_.unwanted) {
    const CheckpointRecord& checkpoint = state_.checkpoints.at(id);
    const JobRecord& job = state_.jobs.at(checkpoint.job);
    // A damaged image is kept for a look at what happened, as long as good ones would be.
    if (checkpoint.state == "damaged" && KeepsImages(job)) continue;
    // An agent whose node starts anew asks the store once more how a task of it has ended.
    if (job.state == JobState::kKilling && job.incarnation == checkpoint.incarnation) continue;
    // Ranks that have ended, too: one may have ended after its image had been put in its place.
    for (int rank = 0; rank < static_cast<int>(checkpoint.nodes.size()); ++rank) {
      const NodeId node = NodeWithImage(checkpoint, rank);
      const bool to_come = IsBeingWritten(checkpoint, rank) && !IsLost(checkpoint.nodes[rank]);
      if (!IsConnected(node) || to_come) continue;
      Deletion& deletion = deletions_[{id, rank}];
      if (now < deletion.again_at) continue;
      deletion.again_at = now + kDeleteAgain;
      if (deletion.op == 0) deletion.op = FreshOp();
      deletion_by_op_[deletion.op] = {{id, rank}, node};
      v1::ToAgent command;
      command.set_op(deletion.op);
      command.mutable_delete_()->set_checkpoint(id.value());
      command.mutable_delete_()->set_tier(ToProto(checkpoint.tier));
      command.mutable_delete_()->set_rank(checkpoint.first_rank + rank);
      Command(node, std::move(command));
    }
  }
}

}  // namespace siding
