#include "agent/host/task.h"

#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "agent/checkpoint/precheck.h"
#include "agent/host/task_ending.h"
#include "agent/launch/json_file.h"
#include "agent/launch/made_names.h"
#include "agent/launch/processes.h"
#include "agent/launch/shim_process.h"
#include "agent/launch/tmpdir.h"
#include "common/fault.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace siding {

Task::Task(HostContext& host, TaskId id, std::string folder) : Task(host, id, std::move(folder), {}) {
  v1::TaskRef& ref = *record_.mutable_report()->mutable_task();
  ref.set_job(id.job.value());
  ref.set_incarnation(id.incarnation);
  ref.set_rank(id.rank);
  record_.set_boot_id(host.boot_id);
}

Task::Task(HostContext& host, TaskId id, std::string folder, agent::TaskRecord record)
    : host_(host),
      id_(id),
      name_(ToString(id)),
      folder_(std::move(folder)),
      record_(std::move(record)),
      wake_(eventfd(0, EFD_CLOEXEC)) {
  if (host_.AssignsGpus() && !IsOver(record_.report().phase()))
    host_.gpus->Keep(name_, {record_.gpu().held().begin(), record_.gpu().held().end()});
}

Task::~Task() {
  {
    std::lock_guard lock(mutex_);
    interrupt_ = true;
    pending_.reset();
    if (decision_ == Decision::kNone) decision_ = Decision::kAbort;
  }
  changed_.notify_all();
  const uint64_t one = 1;
  if (write(wake_.get(), &one, sizeof one) < 0) spdlog::error("task {}: cannot wake the watcher", name_);
  if (worker_.joinable()) worker_.join();
  if (watcher_.joinable()) watcher_.join();
  if (worker_.joinable()) worker_.join();  // the watcher's last
}

void Task::Execute(const v1::ToAgent& command) {
  std::lock_guard lock(mutex_);
  const v1::TaskPhase phase = record_.report().phase();
  switch (command.what_case()) {
    case v1::ToAgent::kCommit:
    case v1::ToAgent::kAbort: {
      const bool commit = command.has_commit();
      const bool undoable = busy_ && (current_.has_dump() || current_.has_suspend());
      const bool meant =
          commit ? phase == v1::PREPARED && command.op() == current_.op() : command.op() >= current_.op();
      // The first decision counts: after a commit has begun there is no way back.
      if (undoable && meant && decision_ == Decision::kNone) {
        FaultHere<"agent.decision: a commit or an abort has come">();
        decision_ = commit ? Decision::kCommit : Decision::kAbort;
        changed_.notify_all();
      } else {
        Send();
      }
      return;
    }
    case v1::ToAgent::kKill:
      if (busy_) {
        if (command.kill().grace_us() == 0) kill_now_ = true;
        if (!current_.has_kill()) {
          pending_ = command;
          interrupt_ = true;
          if (current_.has_dump()) abandon_ = true;
        }
        changed_.notify_all();
        Send();
        return;
      }
      break;
    default:
      if (busy_) {
        const bool same = command.op() == current_.op() && command.what_case() == current_.what_case();
        const bool killing = pending_ && pending_->has_kill();
        if (!same && !killing && !current_.has_kill()) pending_ = command;
        Send();
        return;
      }
  }
  if (auto operation = Plan(command)) {
    Begin(command, std::move(operation));
  } else {
    Send();
  }
}

std::function<void()> Task::Plan(const v1::ToAgent& command) {
  const v1::TaskPhase phase = record_.report().phase();
  if (IsOver(phase)) return {};
  switch (command.what_case()) {
    case v1::ToAgent::kLaunch:
    case v1::ToAgent::kRestore:
      return PlanStart(command);
    case v1::ToAgent::kSuspend:
    case v1::ToAgent::kResume:
      return PlanSuspend(command);
    case v1::ToAgent::kDump:
      return PlanDump(command);
    case v1::ToAgent::kSave:
      return PlanSave(command);
    case v1::ToAgent::kKill:
      record_.set_kill_ordered(true);
      Persist();
      return [this, grace = Duration(command.kill().grace_us())] { DoKill(grace); };
    default:
      return {};
  }
}

void Task::Begin(const v1::ToAgent& command, std::function<void()> operation) {
  busy_ = true;
  current_ = command;
  decision_ = Decision::kNone;
  interrupt_ = false;
  kill_now_ = false;
  abandon_ = false;
  // The last worker is past its last use of the mutex, or never was.
  if (worker_.joinable()) worker_.join();
  worker_ = std::thread([this, operation = std::move(operation)] { Work(operation); });
}

void Task::Work(std::function<void()> operation) {
  while (operation) {
    operation();
    std::lock_guard lock(mutex_);
    operation = nullptr;
    interrupt_ = false;
    abandon_ = false;
    decision_ = Decision::kNone;
    if (Unjudged() && !host_.stopping) {
      operation = [this] { Conclude(); };
    } else if (pending_ && !host_.stopping) {
      current_ = *std::move(pending_);
      pending_.reset();
      operation = Plan(current_);
      if (!operation) Send();
    }
    busy_ = static_cast<bool>(operation);
  }
}

absl::Status Task::TryPersist() {
  SIDING_RETURN_IF_ERROR(FaultAt<"agent.record: what is remembered of a task is about to be written">());
  SIDING_RETURN_IF_ERROR(WriteJsonFile(folder_ + "/task.json", record_, 0600));
  FaultHere<"agent.recorded: what is remembered of a task has been written">();
  return absl::OkStatus();
}

void Task::Persist() {
  if (absl::Status status = TryPersist(); !status.ok())
    spdlog::error("task {}: {}", name_, std::string(status.message()));
}

void Task::PersistAndSend() {
  Persist();
  Send();
}

void Task::SetPhase(v1::TaskPhase phase, int64_t op) {
  if (IsOver(phase)) GiveGpusBack();
  record_.mutable_report()->set_phase(phase);
  record_.mutable_report()->set_op(op);
  PersistAndSend();
}

void Task::Fail(int64_t op, const absl::Status& why) {
  record_.mutable_report()->set_failed_op(op);
  record_.mutable_report()->set_error(std::string(why.message()));
  spdlog::warn("task {}: operation {}: {}", name_, op, std::string(why.message()));
}

void Task::Send() {
  FaultHere<"agent.report: a report of a task is about to go out">();
  // It waits for its turn to be written, while a heartbeat may say something newer.
  record_.mutable_report()->set_version(record_.report().version() + 1);
  v1::FromAgent message;
  *message.mutable_report() = record_.report();
  host_.sink.Send(std::move(message));
}

void Task::NoteStep() {
  std::lock_guard lock(mutex_);
  if (record_.has_steps()) return;
  record_.set_has_steps(true);
  Persist();
}

// Steps are known by their numbers, which begin anew with each start of the job: a script that goes on behind
// a step would find the images of other steps for those that follow. One that begins anew finds its own.
std::string Task::WhyNoScript(pid_t init) {
  if (!record_.hosted() || id_.rank != 0) return "";
  if (FindSrun(init) > 0) NoteStep();
  std::lock_guard lock(mutex_);
  if (!record_.has_steps()) return "";
  return "the script has started steps with srun, and begins anew after a requeue; ask for the steps "
         "instead: "
         "srun --siding-preemptible";
}

// Looked up once, and outside the lock: a directory service may take a while.
Account Task::User() {
  {
    std::lock_guard lock(mutex_);
    if (user_) return *user_;
  }
  Account user = AccountOf(record_.spec().uid(), record_.spec().gid());
  std::lock_guard lock(mutex_);
  user_ = user;
  return user;
}

std::string Task::WhyNotRestorable(pid_t init) {
  const Account user = User();
  if (std::string why = host_.WhyNoCriuFor(user.uid); !why.empty()) return why;
  return std::string(CheckMadeAnew(init, user).message());
}

v1::TaskReport Task::Report() {
  pid_t init = 0;
  std::vector<std::string> on_gpus;
  bool uses_gpus = false, drained = false;
  {
    std::lock_guard lock(mutex_);
    const v1::TaskPhase phase = record_.report().phase();
    if (!IsOver(phase) && IsAlive(record_.init().pid(), record_.init().start_time()))
      init = record_.init().pid();
    uses_gpus = UsesGpus();
    drained = record_.gpu().drained();
    if (!record_.gpu().drained()) on_gpus.assign(record_.gpu().held().begin(), record_.gpu().held().end());
  }
  // Outside the lock: adding up the memory of a large process takes the kernel a while.
  const Bytes memory = init > 0 ? TreeMemory(init) : Bytes{};
  const Bytes gpu_memory =
      on_gpus.empty() || host_.gpus == nullptr
          ? Bytes{}
          : host_.gpus->UsedBy(on_gpus, init > 0 ? ProcessTree(init) : std::vector<pid_t>());
  const auto gpus = uses_gpus ? GpuDevices::kLeave : GpuDevices::kStay;
  std::string cannot_dump = init > 0 ? WhyNoScript(init) : "";
  if (init > 0 && cannot_dump.empty()) cannot_dump = WhyNotDumpable(init, gpus);
  if (init > 0 && cannot_dump.empty() && host_.criu) cannot_dump = WhyNotRestorable(init);
  // While it is off its GPUs nothing can be seen of that, and what was seen before holds.
  const bool looks_at_gpus = init > 0 && !drained;
  std::string cannot_drain;
  Duration lock_time{0};
  if (looks_at_gpus) {
    std::set<pid_t> clients;
    if (uses_gpus && host_.AssignsGpus()) clients = host_.gpus->MayBeOnGpus(ProcessTree(init));
    // As seen a moment ago: the driver is asked only when it matters, for it may keep whoever asks waiting.
    cannot_drain = WhyNotDrainable(init, [&](pid_t pid) { return clients.contains(pid); });
    if (uses_gpus && cannot_dump.empty()) cannot_dump = WhyNotWithoutGpu(init, clients);
    if (!clients.empty()) lock_time = ExpectedLock(clients.size());
  }
  std::lock_guard lock(mutex_);
  v1::TaskReport& report = *record_.mutable_report();
  if (init > 0) report.set_memory(memory.value);
  report.set_gpu_memory(gpu_memory.value);
  if (drained) return report;
  report.set_cannot_checkpoint(cannot_dump);
  report.set_cannot_drain(cannot_drain);
  report.set_gpu_lock_us(lock_time.count());
  return report;
}

bool Task::WaitEnded(Duration timeout, const std::function<bool()>& more) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  std::unique_lock lock(mutex_);
  while (!ended_ && std::chrono::steady_clock::now() < end) {
    if (more && more()) break;
    // Woken by the watcher; the short waits are for `more`, which looks at the world outside.
    changed_.wait_until(
        lock, std::min(end, std::chrono::steady_clock::now() + std::chrono::milliseconds(more ? 20 : 1000)));
  }
  return ended_;
}

bool Task::CanForget() {
  std::lock_guard lock(mutex_);
  return IsOver(record_.report().phase()) && !busy_;
}

void Task::RemoveTraces() {
  if (absl::Status status = freezer().RemoveCgroup(name_); !status.ok()) {
    spdlog::warn("task {}: {}", name_, std::string(status.message()));
  }
  FaultHere<"agent.forget.cgroup: the cgroup of a forgotten task is gone, its folder is not">();
  // Only after an end of the job's own: after any other it may go on from a checkpoint, here or elsewhere.
  if (record_.report().phase() == v1::EXITED && record_.report().own_end()) RemoveTmpdir();
  RemovePlainFolder();
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
  if (error) spdlog::warn("task {}: remove {}: {}", name_, folder_, error.message());
}

void Task::RemovePlainFolder() {
  std::error_code error;
  std::filesystem::remove_all(PlainFolder(), error);
  if (error) spdlog::warn("task {}: remove {}: {}", name_, PlainFolder(), error.message());
}

void Task::RemoveTmpdir() {
  const v1::JobSpec& spec = record_.spec();
  RemoveUserFolder(TaskTmpdir(spec.uid(), id_.job.value(), id_.rank), AccountOf(spec.uid(), spec.gid()));
}

bool Task::Unjudged() const {
  const v1::TaskPhase phase = record_.report().phase();
  return ended_ && !IsOver(phase) && phase != v1::TASK_PHASE_UNSPECIFIED;
}

void Task::Watch(UniqueFd shim) {
  if (watcher_.joinable()) watcher_.join();
  watcher_ = std::thread([this, shim = std::move(shim)] {
    if (!WaitForShim(shim, wake_.get())) return;
    std::lock_guard lock(mutex_);
    ended_ = true;
    // A shim that Slurm killed with everything else of its step could not tidy up.
    if (record_.hosted() && access((folder_ + "/exit.json").c_str(), F_OK) != 0) RemoveTmpdir();
    // On the worker: the last processes may take their time to end.
    if (!busy_ && Unjudged()) Begin({}, [this] { Conclude(); });
    changed_.notify_all();
  });
}

}  // namespace siding
