#include "agent/node/hosted_task.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/memory/share_pages.h"
#include "agent/task/ending.h"
#include "agent/task/json_file.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/room.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

// After the decision to stop, CRIU has so long to come to its next question before it is ended by force.
constexpr Duration kUndoPatience = std::chrono::seconds(5);
constexpr char kRoom[] = ".room";
constexpr size_t kBlock = 4096;

v1::DumpBarrier ToProto(DumpBarrier barrier) {
  switch (barrier) {
    case DumpBarrier::kStop:
      return v1::BARRIER_STOP;
    case DumpBarrier::kHold:
      return v1::BARRIER_HOLD;
    case DumpBarrier::kRunOn:
      return v1::BARRIER_RUN_ON;
    case DumpBarrier::kLeave:
      return v1::BARRIER_LEAVE;
  }
  return v1::BARRIER_NONE;
}

// The record of a task that is new says which it is. Its TaskRef's cluster is there already.
agent::TaskRecord Named(agent::TaskRecord record, const TaskId& id, const HostContext& host) {
  if (record.report().task().job() != 0) return record;
  v1::TaskRef& ref = *record.mutable_report()->mutable_task();
  ref.set_job(id.job.value());
  ref.set_incarnation(id.incarnation);
  ref.set_rank(id.rank);
  record.set_boot_id(host.boot_id);
  if (record.has_cluster()) return record;
  record.set_cluster(ref.cluster() != 0 ? ClusterName(ref.cluster()) : host.cluster->Name());
  record.set_begun_in(record.cluster());
  return record;
}

}  // namespace

HostedTask::HostedTask(HostContext& host, TaskId id, std::string folder, agent::TaskRecord record)
    : host_(host),
      id_(id),
      name_(ToString(id)),
      folder_(std::move(folder)),
      machine_(Named(std::move(record), id, host)),
      record_(machine_.record()),
      ref_(machine_.record().report().task()),
      cluster_(machine_.record().cluster()),
      outside_(NameOutside(name_, cluster_)) {}

void HostedTask::StopWork() {
  {
    MutexLock lock(mutex_);
    Observe(task::AgentStops{}).IgnoreError();
  }
  if (worker_.joinable()) worker_.join();
}

void HostedTask::Execute(const v1::ToAgent& command) {
  // The machine looks at differences only.
  const Time now{std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch())};
  MutexLock lock(mutex_);
  const Decision before = machine_.decision();
  const TaskActions actions = machine_.Take(command, now);
  if (machine_.decision() != before) FaultHere<"agent.decision: a commit or an abort has come">();
  Perform(actions).IgnoreError();
}

void HostedTask::CopyFacts() {
  interrupt_ = machine_.interrupted();
  kill_now_ = machine_.kill_at_once();
}

agent::TaskRecord HostedTask::Record() {
  MutexLock lock(mutex_);
  return record_;
}

agent::ProcessRef HostedTask::Init() {
  MutexLock lock(mutex_);
  return record_.init();
}

absl::Status HostedTask::Perform(const TaskActions& actions) {
  CopyFacts();
  absl::Status recorded;
  for (const TaskAction& action : actions) {
    switch (action.kind) {
      case TaskAction::kRecord:
        Persist();
        break;
      case TaskAction::kRecordStart:
        if (absl::Status status = TryPersist(); !status.ok())
          return Observe(task::StartNotRecorded{std::string(status.message())});
        break;
      case TaskAction::kRecordFirst:
        if (absl::Status status = NoteRecorded(TryPersist()); !status.ok()) return status;
        break;
      case TaskAction::kRecordDurably:
        recorded = PersistDurably();
        break;
      case TaskAction::kSend:
        Send();
        break;
      case TaskAction::kReleaseGpus:
        ReleaseGpus();
        break;
      case TaskAction::kWake:
        changed_.NotifyAll();
        break;
      case TaskAction::kAbandonDump:
        abandon_ = true;
        break;
      case TaskAction::kKillProcesses:
        KillProcesses();
        break;
      case TaskAction::kBegin:
        abandon_ = false;
        if (on_worker_) {
          next_ = action;
          break;
        }
        // The last worker is past its last use of the mutex, or never was.
        if (worker_.joinable()) worker_.join();
        worker_ = std::thread([this, action] { Work(action); });
        break;
      case TaskAction::kFinalizeNow:
        break;  // Adopt() does
    }
  }
  return recorded;
}

void HostedTask::Work(TaskAction work) {
  for (std::optional<TaskAction> next = std::move(work); next;) {
    Do(*next);
    Done();
    MutexLock lock(mutex_);
    abandon_ = false;
    on_worker_ = true;
    next_.reset();
    Observe(task::WorkDone{host_.stopping}).IgnoreError();
    on_worker_ = false;
    next = std::exchange(next_, std::nullopt);
  }
}

absl::Status HostedTask::TryPersist() {
  SIDING_RETURN_IF_ERROR(FaultAt<"agent.record: what is remembered of a task is about to be written">());
  SIDING_RETURN_IF_ERROR(WriteRecord(/*durably=*/false));
  FaultHere<"agent.recorded: what is remembered of a task has been written">();
  return absl::OkStatus();
}

absl::Status HostedTask::PersistDurably() { return NoteRecorded(WriteRecord(/*durably=*/true)); }

// On a full disk in its room, which is taken again as soon as the earlier record has made way for this one.
absl::Status HostedTask::WriteRecord(bool durably) {
  SIDING_ASSIGN_OR_RETURN(std::string text, ToJson(record_));
  text += "\n";
  const std::string path = folder_ + "/task.json";
  absl::Status status = durably ? WriteFileDurably(path, text, 0600) : WriteFileAtomically(path, text, 0600);
  if (absl::IsResourceExhausted(status)) {
    room_ = 0;  // also where it did not work: it may have become the record
    if (WriteInRoom(path + kRoom, path, text).ok()) status = absl::OkStatus();
  }
  if (status.ok()) KeepRoom(text.size());
  return status;
}

// Of whole blocks, and where there is more for a record that grows.
void HostedTask::KeepRoom(size_t bytes) {
  const size_t least = (bytes / kBlock + 1) * kBlock;
  if (room_ >= least) return;
  for (const size_t room : {2 * least, least}) {
    if (!TakeRoom(folder_ + "/task.json" + kRoom, room, 0600).ok()) continue;
    room_ = room;
    return;
  }
}

// In the log once, however often it is tried.
absl::Status HostedTask::NoteRecorded(absl::Status status) {
  if (!status.ok() && !unrecorded_)
    spdlog::error("task {}: {}; its record is written when that is possible", name_,
                  std::string(status.message()));
  if (status.ok() && unrecorded_) spdlog::info("task {}: its record is written", name_);
  unrecorded_ = !status.ok();
  return status;
}

void HostedTask::RecordAgain() {
  MutexLock lock(mutex_);
  if (unrecorded_) PersistDurably().IgnoreError();
}

void HostedTask::Send() {
  FaultHere<"agent.report: a report of a task is about to go out">();
  // It waits for its turn to be written, while a heartbeat may say something newer.
  record_.mutable_report()->set_version(record_.report().version() + 1);
  v1::FromAgent message;
  *message.mutable_report() = record_.report();
  host_.sink.Send(std::move(message));
}

bool HostedTask::CanForget() {
  MutexLock lock(mutex_);
  return IsOver(machine_.phase()) && !machine_.busy();
}

bool HostedTask::ImageIsVisible() {
  const agent::DumpRecord dump = Record().dump();
  const auto store = host_.Store(dump.tier());
  if (!dump.committing() || !store.ok()) return false;
  const auto image = (*store)->Read({CheckpointId(dump.checkpoint()), id_.rank});
  // One of an earlier try may be there under the same name.
  return image.ok() && (dump.image_digest().empty() || image->digest == dump.image_digest());
}

// ---- The dump of any task. ----

void HostedTask::Dumper::OnProgress(Bytes done) {
  v1::FromAgent message;
  v1::Progress& progress = *message.mutable_progress();
  *progress.mutable_task() = task_.ref_;
  progress.set_op(command_.op());
  progress.set_bytes_done(done.value);
  const std::chrono::duration<double> taken = Steady::now() - begun_;
  progress.set_bytes_per_second(static_cast<double>(done.value) / taken.count());
  bool prepared = false;
  {
    MutexLock lock(task_.mutex_);
    progress.set_bytes_total(std::max(done.value, task_.record_.report().memory()));
    prepared = task_.machine_.phase() != v1::DUMPING;
    const bool by_criu = !prepared && !task_.record_.report().runs_on();
    if (!by_criu || Stop().ok())
      stop_since_.reset();
    else if (!stop_since_)
      stop_since_ = Steady::now();
  }
  if (prepared) return;
  if (stop_since_ && Steady::now() - *stop_since_ > kUndoPatience) task_.abandon_ = true;
  task_.host_.sink.Send(std::move(message));
}

absl::Status HostedTask::Dumper::OnWritten(const std::string& folder, const StillHeld& held) {
  if (!rehearse_) return absl::OkStatus();
  const auto begun = Steady::now();
  // What is left of the time for the dump is for its decision as well.
  const bool has_limit = command_.dump().patience_us() > 0;
  const auto most = std::chrono::duration_cast<Duration>((patience_ends_ - begun) / 2);
  const auto stop = [&] {
    MutexLock lock(task_.mutex_);
    return !Stop().ok() || !held().ok();
  };
  const absl::Status status = rehearse_(folder, has_limit ? most : Duration::max(), stop);
  rehearsing_ = Steady::now() - begun;
  return status;
}

absl::Status HostedTask::Dumper::OnBarrier(DumpBarrier barrier) {
  SIDING_RETURN_IF_ERROR(
      FaultAtCriu<"agent.dump.barrier: one of several ranks is at a barrier, nobody has been told">());
  MutexLock lock(task_.mutex_);
  if (barrier == DumpBarrier::kHold) stood_still_ = {};  // the first at which it does
  // Not even a heartbeat says it before it is recorded.
  if (barrier == DumpBarrier::kRunOn) SIDING_RETURN_IF_ERROR(task_.Observe(task::Captured{}));
  return task_.Observe(task::AtBarrier{ToProto(barrier)});
}

absl::StatusOr<bool> HostedTask::Dumper::MayPass(DumpBarrier barrier, Duration most, const StillHeld& held) {
  MutexLock lock(task_.mutex_);
  const auto begun = Steady::now();
  const auto all_have = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(task_.mutex_) {
    return task_.machine_.may_pass() >= ToProto(barrier);
  };
  auto passed = Await(all_have, most, held);
  const auto took = Steady::now() - begun;
  waited_ += took;
  if (barrier != DumpBarrier::kStop) stood_still_ += took;
  return passed;
}

void HostedTask::Dumper::OnRunsOn(Duration stopped) {
  MutexLock lock(task_.mutex_);
  task_.Observe(task::RunsOn{stopped}).IgnoreError();
}

absl::Status HostedTask::Dumper::OnPrepared(const Manifest& manifest, const StillHeld& held) {
  MutexLock lock(task_.mutex_);
  const auto took = Steady::now() - begun_ - rehearsing_ - waited_;
  if (!shares_) {
    task_.host_.rates->Add(MediumOf(command_.dump().tier()), Transfer::kDump, UsedSize(manifest),
                           std::chrono::duration_cast<Duration>(took));
  }
  if (absl::Status stop = Stop(); !stop.ok()) return stop;
  task_
      .Observe(task::Prepared{UsedSize(manifest).value, manifest.NewSize().value, manifest.digest,
                              std::chrono::duration_cast<Duration>(stood_still_)})
      .IgnoreError();
  SIDING_RETURN_IF_ERROR(
      FaultAtCriu<"agent.dump.prepared: the controller is told that the image is whole">());
  lock.Unlock();
  SIDING_RETURN_IF_ERROR(
      FaultAtCriu<"agent.dump.waiting: whether the image is to count is about to be asked, without locks">());
  lock.Lock();
  const auto committed = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(task_.mutex_) {
    return task_.machine_.decision() == Decision::kCommit;
  };
  return Await(committed, Duration::max(), held).status();
}

absl::StatusOr<bool> HostedTask::Dumper::Await(const std::function<bool()>& done, Duration most,
                                               const StillHeld& held) {
  const auto begun = Steady::now();
  for (;;) {
    // Peers may act by what was decided: who has let go of it meanwhile comes later.
    if (done()) return true;
    SIDING_RETURN_IF_ERROR(held());
    if (absl::Status stop = Stop(); !stop.ok()) return stop;
    if (std::chrono::duration_cast<Duration>(Steady::now() - begun) >= most) return false;
    // Also looks at the clock and at CRIU, which are not this condition's.
    task_.changed_.WaitFor(task_.mutex_, std::chrono::milliseconds(50));
  }
}

absl::Status HostedTask::Dumper::OnCommitting() {
  MutexLock lock(task_.mutex_);
  if (absl::Status stop = Stop(); !stop.ok()) return stop;
  absl::Status status = FaultAt<"agent.dump.committing: that it commits is about to be remembered">();
  if (status.ok()) status = task_.Observe(task::Committing{});
  if (status.ok() && !task_.record_.dump().committing())
    status = absl::InternalError("there is no dump to commit");
  if (status.ok()) return status;
  task_.Observe(task::CommitNotRecorded{}).IgnoreError();
  if (!std::exchange(commit_waits_, true))
    spdlog::warn("task {}: its image cannot count yet: {}", task_.name_, std::string(status.message()));
  return status;
}

void HostedTask::Dumper::OnCommitted() {
  MutexLock lock(task_.mutex_);
  task_.Observe(task::Committed{}).IgnoreError();
}

absl::Status HostedTask::Dumper::Stop() const {
  if (task_.machine_.decision() == Decision::kAbort)
    return absl::AbortedError("the checkpoint was called off");
  if (task_.machine_.ended()) return absl::AbortedError("the task has ended");
  if (task_.Interrupted()) return absl::AbortedError("the checkpoint was interrupted");
  const bool is_late = command_.dump().patience_us() > 0 && Steady::now() >= patience_ends_;
  if (task_.machine_.decision() != Decision::kCommit && is_late) {
    return absl::DeadlineExceededError(absl::StrCat("the checkpoint was not committed in time, which was ",
                                                    FormatDuration(Duration(command_.dump().patience_us()))));
  }
  return absl::OkStatus();
}

}  // namespace siding
