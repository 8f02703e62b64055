#include "agent/host/task.h"

#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <set>

#include "absl/strings/str_format.h"
#include "agent/checkpoint/precheck.h"
#include "agent/task/ending.h"
#include "agent/launch/json_file.h"
#include "agent/launch/processes.h"
#include "agent/launch/shim_process.h"
#include "agent/launch/tmpdir.h"
#include "common/fault.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

// A look that is at one process for longer does not come back.
constexpr auto kBlind = std::chrono::seconds(10);
// The same, where an order waits for it.
constexpr auto kCheckPatience = std::chrono::seconds(10);
constexpr int kLookAtFenceMs = 1000;

}  // namespace

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
        KillPastWorker(Duration(command.kill().grace_us()));
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
  told_to_end_.reset();
  // The last worker is past its last use of the mutex, or never was.
  if (worker_.joinable()) worker_.join();
  worker_ = std::thread([this, operation = std::move(operation)] { Work(operation); });
}

void Task::Work(std::function<void()> operation) {
  while (operation) {
    operation();
    FenceAgain();
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
      told_to_end_.reset();  // a kill has all of its grace from here on
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

SightAsked Task::WhatToLookAt() const {
  SightAsked asked;
  const bool over = IsOver(record_.report().phase());
  if (!over && IsAlive(record_.init().pid(), record_.init().start_time())) asked.init = record_.init().pid();
  asked.gpu = Gpus();
  asked.drained = record_.gpu().drained();
  if (!asked.drained) asked.on_gpus.assign(record_.gpu().held().begin(), record_.gpu().held().end());
  asked.has_criu = host_.criu != nullptr;
  asked.uid = record_.spec().uid();
  asked.gid = record_.spec().gid();
  asked.no_criu = host_.WhyNoCriuFor(asked.uid);
  asked.user = user_;
  return asked;
}

v1::TaskReport Task::Report(std::chrono::steady_clock::time_point until) {
  SightAsked asked;
  {
    std::lock_guard lock(mutex_);
    asked = WhatToLookAt();
  }
  const pid_t init = asked.init;
  const bool drained = asked.drained;
  const std::string no_script = init > 0 ? WhyNoScript(init) : "";
  const auto now = std::chrono::steady_clock::now();
  // One that has hung since the last report is not waited for again.
  const bool begun = (init > 0 || !asked.on_gpus.empty()) && looks_.Begin([asked, sighting = sighting_] {
    sighting->Put(Look(asked, sighting->at));
  });
  if (begun) looks_.Wait(until);
  const auto since = looks_.since();
  const pid_t at = sighting_->at;
  const bool blind = init > 0 && since && now - std::max(*since, sighting_->SinceAt(at)) > kBlind;
  const std::string why_blind = blind ? WhyNotSeen(at) : "";
  const Bytes resident = blind ? TreeResident(init) : Bytes{};
  const std::optional<Sight> sight = sighting_->last();
  Duration lock_time{0};
  if (sight && sight->gpu_clients > 0) lock_time = ExpectedLock(sight->gpu_clients);
  std::lock_guard lock(mutex_);
  if (blind != blind_) {
    blind_ = blind;
    if (blind)
      spdlog::warn("task {}: {}", name_, why_blind);
    else if (init > 0)
      spdlog::info("task {}: it can be looked at again", name_);
  }
  if (sight && sight->user) user_ = sight->user;
  v1::TaskReport& report = *record_.mutable_report();
  if (blind) {
    report.set_memory(resident.value);
  } else if (init > 0 && sight && sight->drained == drained) {
    report.set_memory(sight->memory.value);
  }
  if (asked.on_gpus.empty() || !sight)
    report.set_gpu_memory(0);
  else if (sight->drained == drained)
    report.set_gpu_memory(sight->gpu_memory.value);
  if (drained) return report;
  std::string cannot_dump = no_script;
  if (cannot_dump.empty()) cannot_dump = blind ? why_blind : init > 0 && sight ? sight->cannot_dump : "";
  report.set_cannot_checkpoint(cannot_dump);
  // Before a drain its processes' memory is read, too.
  const bool cannot_drain = blind && asked.gpu.used;
  report.set_cannot_drain(cannot_drain ? why_blind : init > 0 && sight ? sight->cannot_drain : "");
  report.set_gpu_lock_us(init > 0 ? lock_time.count() : 0);
  return report;
}

absl::Status Task::InTime(std::function<absl::Status()> look) {
  const auto end = std::chrono::steady_clock::now() + kCheckPatience;
  const auto answer = std::make_shared<absl::Status>();
  if (!checks_.Begin([answer, look = std::move(look)] { *answer = look(); }))
    return absl::DeadlineExceededError(WhyNotSeen(0));
  const auto slice = [] { return std::chrono::steady_clock::now() + std::chrono::milliseconds(20); };
  while (!checks_.Wait(std::min(end, slice()))) {
    if (Interrupted()) return absl::AbortedError("interrupted");
    if (std::chrono::steady_clock::now() >= end) return absl::DeadlineExceededError(WhyNotSeen(0));
  }
  return *answer;
}

bool Task::WaitEnded(Duration timeout, const std::function<bool()>& more) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  std::unique_lock lock(mutex_);
  while (!ended_ && std::chrono::steady_clock::now() < end) {
    if (more) {
      // It may look at the world outside, which may keep it waiting, and reports do not wait for that.
      lock.unlock();
      const bool enough = more();
      lock.lock();
      if (enough || ended_) break;
    }
    // Woken by the watcher; the short waits are for `more`.
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
  if (absl::Status status = host_.fence.For(name_).Remove(); !status.ok())
    spdlog::warn("task {}: {}", name_, std::string(status.message()));
  FaultHere<"agent.forget.cgroup: the cgroup of a forgotten task is gone, its folder is not">();
  // Only after an end of the job's own: after any other it may go on from a checkpoint, here or elsewhere.
  const bool over = record_.report().phase() == v1::EXITED && record_.report().own_end();
  RemovePlainFolder();
  // Last: an agent that dies before finds the task again, and is told again to forget it.
  const auto remove_folder = [folder = folder_, name = name_] {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
    if (error) spdlog::warn("task {}: remove {}: {}", name, folder, error.message());
  };
  if (over)
    RemoveTmpdir(remove_folder);
  else
    remove_folder();
}

void Task::RemovePlainFolder() {
  std::error_code error;
  std::filesystem::remove_all(PlainFolder(), error);
  if (error) spdlog::warn("task {}: remove {}: {}", name_, PlainFolder(), error.message());
}

// At once its name is free for the job's next start. How much there is to remove is up to the job, and so is
// whether that ever ends; `then` is called when it has.
void Task::RemoveTmpdir(const std::function<void()>& then) {
  const uid_t uid = record_.spec().uid();
  const gid_t gid = record_.spec().gid();
  const std::string path = TaskTmpdir(uid, id_.job.value(), id_.rank);
  // An agent that died in the middle has left its other name. What has its own by now may be the next
  // start's.
  const std::string note = folder_ + "/removed";
  std::string aside = ReadFile(note).value_or("");
  if (aside.empty()) {
    std::random_device random;
    aside = absl::StrFormat("/tmp/siding-removed-%08x%08x", random(), random());
    if (const absl::Status noted = WriteFileAtomically(note, aside, 0600); !noted.ok())
      spdlog::warn("task {}: {}", name_, std::string(noted.message()));
    const absl::Status moved = MoveUserFolder(path, aside, uid, gid);
    if (!moved.ok() && !absl::IsNotFound(moved))
      spdlog::warn("task {}: {}; it is left there", name_, std::string(moved.message()));
  }
  host_.leftovers.Add(uid, [aside, uid, gid, then] {
    RemoveUserFolder(aside, AccountOf(uid, gid));
    then();
  });
}

bool Task::Unjudged() const {
  const v1::TaskPhase phase = record_.report().phase();
  return ended_ && !IsOver(phase) && phase != v1::TASK_PHASE_UNSPECIFIED;
}

void Task::Watch(UniqueFd shim) {
  if (watcher_.joinable()) watcher_.join();
  watcher_ = std::thread([this, shim = std::move(shim)] {
    for (ShimWait seen = ShimWait::kGoesOn; seen != ShimWait::kEnded;) {
      seen = WaitForShim(shim, wake_.get(), MemoryIsFenced() ? kLookAtFenceMs : -1);
      if (seen == ShimWait::kWoken) return;
      if (seen == ShimWait::kGoesOn) LookAtFence();
    }
    // A shim that Slurm killed with everything else of its step could not tidy up. Without the lock: how much
    // there is to remove is up to the job.
    if (record_.hosted() && access((folder_ + "/exit.json").c_str(), F_OK) != 0) RemoveTmpdir();
    std::lock_guard lock(mutex_);
    ended_ = true;
    // On the worker: the last processes may take their time to end.
    if (!busy_ && Unjudged()) Begin({}, [this] { Conclude(); });
    changed_.notify_all();
  });
}

}  // namespace siding
