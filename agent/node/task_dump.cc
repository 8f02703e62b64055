#include <chrono>

#include "absl/strings/str_cat.h"
#include "agent/checkpoint/dump.h"
#include "agent/checkpoint/held_files.h"
#include "agent/checkpoint/recreated_names.h"
#include "agent/checkpoint/shared_memory.h"
#include "agent/node/task.h"
#include "agent/os/processes.h"
#include "agent/shim/shim.h"
#include "agent/task/json_file.h"
#include "common/fault.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

// After the decision to stop, CRIU has so long to come to its next question before it is ended by force.
constexpr Duration kUndoPatience = std::chrono::seconds(5);

}  // namespace

// What a dump tells the task, and asks of it.
class Task::Dumper final : public DumpObserver {
 public:
  using Steady = std::chrono::steady_clock;

  // `ordered`: when it was begun, which may be some notice ago.
  Dumper(Task& task, const v1::ToAgent& command, Steady::time_point ordered)
      : task_(task),
        command_(command),
        begun_(Steady::now()),
        patience_ends_(ordered + std::chrono::microseconds(command.dump().patience_us())) {}

  void OnProgress(Bytes done) override {
    v1::FromAgent message;
    v1::Progress& progress = *message.mutable_progress();
    *progress.mutable_task() = command_.task();
    progress.set_op(command_.op());
    progress.set_bytes_done(done.value);
    const std::chrono::duration<double> taken = Steady::now() - begun_;
    progress.set_bytes_per_second(static_cast<double>(done.value) / taken.count());
    bool prepared = false;
    {
      MutexLock lock(task_.mutex_);
      progress.set_bytes_total(std::max(done.value, task_.record_.report().memory()));
      prepared = task_.machine_.phase() != v1::DUMPING;
      if (!prepared && Stop().ok())
        stop_since_.reset();
      else if (!prepared && !stop_since_)
        stop_since_ = Steady::now();
    }
    if (prepared) return;
    if (stop_since_ && Steady::now() - *stop_since_ > kUndoPatience) task_.abandon_ = true;
    task_.host_.sink.Send(std::move(message));
  }

  absl::Status OnPrepared(const Manifest& manifest, const StillHeld& held) override {
    MutexLock lock(task_.mutex_);
    const auto took = Steady::now() - begun_;
    task_.host_.rates->Add(MediumOf(command_.dump().tier()), Transfer::kDump, manifest.TotalSize(),
                           std::chrono::duration_cast<Duration>(took));
    if (absl::Status stop = Stop(); !stop.ok()) return stop;
    task_.Observe(task::Prepared{manifest.TotalSize().value, manifest.digest}).IgnoreError();
    SIDING_RETURN_IF_ERROR(
        FaultAtCriu<"agent.dump.prepared: the controller is told that the image is whole">());
    for (;;) {
      SIDING_RETURN_IF_ERROR(held());
      if (task_.machine_.decision() == Decision::kCommit) return absl::OkStatus();
      if (absl::Status stop = Stop(); !stop.ok()) return stop;
      // Also looks at the clock and at CRIU, which are not this condition's.
      task_.changed_.WaitFor(task_.mutex_, std::chrono::milliseconds(50));
    }
  }

  absl::Status OnCommitting() override {
    MutexLock lock(task_.mutex_);
    absl::Status status = FaultAt<"agent.dump.committing: that it commits is about to be remembered">();
    if (status.ok()) status = task_.Observe(task::Committing{});
    if (status.ok() && !task_.record_.dump().committing())
      status = absl::InternalError("there is no dump to commit");
    if (!status.ok()) task_.Observe(task::CommitNotRecorded{}).IgnoreError();
    return status;
  }

  void OnCommitted() override {
    MutexLock lock(task_.mutex_);
    task_.Observe(task::Committed{}).IgnoreError();
  }

 private:
  // Not OK: the dump is to be undone.
  absl::Status Stop() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(task_.mutex_) {
    if (task_.machine_.decision() == Decision::kAbort)
      return absl::AbortedError("the checkpoint was called off");
    if (task_.machine_.ended()) return absl::AbortedError("the task has ended");
    if (task_.Interrupted()) return absl::AbortedError("the checkpoint was interrupted");
    const bool is_late = command_.dump().patience_us() > 0 && Steady::now() >= patience_ends_;
    if (task_.machine_.decision() != Decision::kCommit && is_late) {
      return absl::DeadlineExceededError(
          absl::StrCat("the checkpoint was not committed in time, which was ",
                       FormatDuration(Duration(command_.dump().patience_us()))));
    }
    return absl::OkStatus();
  }

  Task& task_;
  const v1::ToAgent& command_;
  const Steady::time_point begun_;
  const Steady::time_point patience_ends_;
  std::optional<Steady::time_point> stop_since_;  // the progress thread's
};

void Task::DoDump(v1::ToAgent command) {
  const auto ordered = std::chrono::steady_clock::now();
  // What a dump changes of it is not looked at here, but for its GPUs.
  const agent::TaskRecord record = Record();
  const v1::JobSpec& spec = record.spec();
  const pid_t init = record.init().pid();
  const auto run = [&]() -> absl::Status {
    SIDING_RETURN_IF_ERROR(FaultAt<"agent.dump: a dump is about to begin">());
    if (!host_.criu) return absl::UnavailableError("no checkpoint on this node: " + host_.criu_problem);
    if (const std::string why = host_.WhyNoCriuFor(spec.uid()); !why.empty())
      return absl::FailedPreconditionError(why);
    SIDING_ASSIGN_OR_RETURN(ImageStore* const store, host_.Store(command.dump().tier()));
    if (const std::string why = WhyNoScript(init); !why.empty()) return absl::FailedPreconditionError(why);
    if (!record.dump().was_frozen()) SIDING_RETURN_IF_ERROR(GiveNotice(Duration(command.dump().notice_us())));
    SIDING_RETURN_IF_ERROR(ThawIfFrozen());
    SIDING_RETURN_IF_ERROR(LeaveGpus(Duration(command.dump().lock_patience_us())));
    SIDING_RETURN_IF_ERROR(FaultAt<"agent.dump.ready: the task runs, and is off its GPUs">());
    const Account user = User();
    // Asked again when it is frozen. Now it costs no dump, and no other thread waits if the task blocks it.
    SIDING_RETURN_IF_ERROR(InTime([init, user]() -> absl::Status {
      AwaitMemory(init);
      SIDING_RETURN_IF_ERROR(Annotate(CheckHeldFiles(init, user), "it could not be restored"));
      return Annotate(CheckRecreatedNames(init, user), "it could not be restored");
    }));
    DumpPlan plan;
    plan.account = user;
    plan.shared_mark = SharedMemoryMark(id_.job.value(), id_.rank);
    plan.key = {CheckpointId(command.dump().checkpoint()), id_.rank};
    plan.init = init;
    plan.work_folder = folder_;
    SIDING_RETURN_IF_ERROR(freezer().MakeCgroup(name_).status());  // an earlier version made none for shims
    plan.cgroup = freezer().ShimCgroupPath(name_);
    plan.keep_running = command.dump().keep_running();
    plan.user = host_.UserFor(spec);
    if (!spec.command_checksum().empty()) plan.metadata[kMetadataCommand] = spec.command_checksum();
    plan.metadata[kMetadataIncarnation] = std::to_string(id_.incarnation);
    plan.metadata[kMetadataNode] = host_.options.node;
    plan.metadata[kMetadataUser] = std::to_string(spec.uid());
    if (UsesGpus()) {
      SIDING_ASSIGN_OR_RETURN(plan.metadata[kMetadataGpu], ToJson(Record().gpu()));
    }
    RaiseFence(RoomForDump(init));
    Dumper dumper(*this, command, ordered);
    return RunDump(*host_.criu, *store, plan, dumper, abandon_);
  };
  absl::Status status = run();
  const bool ends = status.ok() && !command.dump().keep_running();
  if (ends && WaitEnded(kEndPatience)) return;  // Work() concludes
  if (ends) status = absl::InternalError("the processes did not end after the checkpoint");
  // As it was before: on its GPUs, or frozen.
  bool frozen = false;
  if (record.dump().was_frozen()) {
    frozen = FreezeAgain();
  } else if (absl::Status back = ReturnToGpus(); !back.ok()) {
    status.Update(back);
    frozen = FreezeAgain();
  }
  MutexLock lock(mutex_);
  if (!status.ok()) spdlog::warn("task {}: dump {}: {}", name_, command.op(), std::string(status.message()));
  const bool cut_short = absl::IsUnavailable(status) || abandon_;
  Observe(task::DumpEnded{frozen, cut_short, std::string(status.message())}).IgnoreError();
}

}  // namespace siding
