#include "agent/node/task.h"

#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <set>

#include "absl/strings/str_format.h"
#include "agent/checkpoint/precheck.h"
#include "agent/os/processes.h"
#include "agent/os/tmpdir.h"
#include "agent/shim/shim_process.h"
#include "agent/task/ending.h"
#include "agent/task/json_file.h"
#include "common/fault.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

// A look that is at one process for longer does not come back.
// The same, where an order waits for it.
constexpr auto kCheckPatience = std::chrono::seconds(10);
constexpr int kCheckFenceMs = 1000;

}  // namespace

Task::Task(HostContext& host, TaskId id, std::string folder, agent::TaskRecord record)
    : HostedTask(host, id, std::move(folder), std::move(record)), wake_(eventfd(0, EFD_CLOEXEC)) {
  MutexLock lock(mutex_);
  SetBegunIn(record_.begun_in());
  Task::CopyFacts();
  if (host_.AssignsGpus() && !IsOver(record_.report().phase()))
    host_.gpus->Keep(outside_, {record_.gpu().held().begin(), record_.gpu().held().end()});
}

Task::~Task() {
  const uint64_t one = 1;
  if (write(wake_.get(), &one, sizeof one) < 0) spdlog::error("task {}: cannot wake the watcher", name_);
  StopWork();
  if (watcher_.joinable()) watcher_.join();
  StopWork();  // the watcher's last
}

void Task::SetBegunIn(const std::string& cluster) {
  record_.set_begun_in(cluster);
  host_.job_tasks.Set(outside_, NamesIn(record_), id_.incarnation);
}

void Task::CopyFacts() {
  HostedTask::CopyFacts();
  externally_managed_ = record_.externally_managed();
  uses_gpus_ = record_.spec().per_node().gpus() > 0;
}

void Task::KillProcesses() {
  spdlog::warn("task {}: what is under way does not make way; its processes are killed", name_);
  freezer().KillAll(outside_, LivingInit(record_.init()));
}

void Task::Do(const TaskAction& work) {
  switch (work.work) {
    case TaskWork::kNone:
      return;
    case TaskWork::kStart:
      return work.order.has_restore() ? DoRestore(work.order) : DoLaunch(work.order);
    case TaskWork::kFailStart:
      return FailStart(absl::InternalError(work.error));
    case TaskWork::kSuspend:
      return DoSuspend(work.order);
    case TaskWork::kResume:
      return DoResume();
    case TaskWork::kDump:
      return DoDump(work.order);
    case TaskWork::kSave:
      return DoSave(work.order);
    case TaskWork::kKill:
      return DoKill(Duration(work.order.kill().grace_us()));
    case TaskWork::kAdopt:
      return DoAdopt();
    case TaskWork::kFinalize:
      return Finalize();
  }
}

void Task::Execute(const v1::ToAgent& command) {
  // About what the task has around it, and so beside all work.
  if (command.has_join_network()) return JoinNetwork(command.join_network());
  command.has_all_joined() ? RunJoined() : HostedTask::Execute(command);
}

void Task::NoteStep() {
  MutexLock lock(mutex_);
  if (record_.has_steps()) return;
  record_.set_has_steps(true);
  Persist();
}

// Steps are known by their numbers, which begin at 0 with each start of the job: a script restored behind a
// step would find the images of other steps for those that follow. One that starts over finds its own.
std::string Task::WhyNoScript(pid_t init) {
  if (!externally_managed_ || id_.rank != 0) return "";
  if (FindSrun(init) > 0) NoteStep();
  MutexLock lock(mutex_);
  if (!record_.has_steps()) return "";
  return "the script has started steps with srun, and starts over after a requeue; ask for the steps "
         "instead: "
         "srun --siding-preemptible";
}

// Looked up once, and outside the lock: a directory service may take a while.
Account Task::User() {
  uid_t uid = 0;
  gid_t gid = 0;
  {
    MutexLock lock(mutex_);
    if (user_) return *user_;
    uid = record_.spec().uid();
    gid = record_.spec().gid();
  }
  Account user = AccountOf(uid, gid);
  MutexLock lock(mutex_);
  user_ = user;
  return user;
}

InspectionRequest Task::WhatToInspect() const {
  InspectionRequest asked;
  const bool over = IsOver(record_.report().phase());
  if (!over && IsAlive(record_.init().pid(), record_.init().start_time())) asked.init = record_.init().pid();
  asked.gpu = Gpus();
  asked.drained = record_.gpu().drained();
  if (!asked.drained) asked.on_gpus.assign(record_.gpu().held().begin(), record_.gpu().held().end());
  asked.has_criu = host_.criu != nullptr;
  asked.uid = record_.spec().uid();
  asked.gid = record_.spec().gid();
  asked.criu = host_.CriuFor(asked.uid, asked.gid);
  asked.no_criu = host_.WhyNoCriuFor(asked.uid);
  // Its own network is held as a whole.
  if (!record_.spec().keep_connections()) asked.no_packet_tables = host_.no_packet_tables;
  asked.user = user_;
  return asked;
}

v1::TaskReport Task::Report(std::chrono::steady_clock::time_point until) {
  InspectionRequest asked;
  {
    MutexLock lock(mutex_);
    asked = WhatToInspect();
  }
  const pid_t init = asked.init;
  const bool drained = asked.drained;
  const std::string no_script = init > 0 ? WhyNoScript(init) : "";
  const auto [inspection, why_hangs] = inspections_.Look(asked, until);
  const bool hangs = !why_hangs.empty();
  const Bytes resident = hangs ? TreeResident(init) : Bytes{};
  Duration lock_time{0};
  if (inspection && inspection->gpu_clients > 0) lock_time = ExpectedLock(inspection->gpu_clients);
  MutexLock lock(mutex_);
  if (hangs != inspection_hangs_) {
    inspection_hangs_ = hangs;
    if (hangs)
      spdlog::warn("task {}: {}", name_, why_hangs);
    else if (init > 0)
      spdlog::info("task {}: it can be looked at again", name_);
  }
  if (inspection && inspection->user) user_ = inspection->user;
  v1::TaskReport& report = *record_.mutable_report();
  if (hangs) {
    report.set_memory(resident.value);
  } else if (init > 0 && inspection && inspection->drained == drained) {
    report.set_memory(inspection->memory.value);
  }
  if (asked.on_gpus.empty() || !inspection)
    report.set_gpu_memory(0);
  else if (inspection->drained == drained)
    report.set_gpu_memory(inspection->gpu_memory.value);
  if (drained) return report;
  std::string cannot_dump = no_script;
  if (cannot_dump.empty())
    cannot_dump = hangs ? why_hangs : init > 0 && inspection ? inspection->cannot_dump : "";
  report.set_cannot_checkpoint(cannot_dump.empty() ? record_.no_restore() : cannot_dump);
  // Before a drain its processes' memory is read, too.
  const bool cannot_drain = hangs && asked.gpu.used;
  report.set_cannot_drain(cannot_drain ? why_hangs : init > 0 && inspection ? inspection->cannot_drain : "");
  report.set_timer(init > 0 && inspection ? inspection->timer : "");
  report.set_gpu_lock_us(init > 0 ? lock_time.count() : 0);
  return report;
}

absl::Status Task::InTime(std::function<absl::Status()> look) {
  const auto end = std::chrono::steady_clock::now() + kCheckPatience;
  const auto answer = std::make_shared<absl::Status>();
  if (!checks_.Begin([answer, look = std::move(look)] { *answer = look(); }))
    return absl::DeadlineExceededError(WhyNotInspected(0));
  const auto slice = [] { return std::chrono::steady_clock::now() + std::chrono::milliseconds(20); };
  while (!checks_.Wait(std::min(end, slice()))) {
    if (Interrupted()) return absl::AbortedError("interrupted");
    if (std::chrono::steady_clock::now() >= end) return absl::DeadlineExceededError(WhyNotInspected(0));
  }
  return *answer;
}

bool Task::WaitEnded(Duration timeout, const std::function<bool()>& more) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  MutexLock lock(mutex_);
  while (!machine_.ended() && std::chrono::steady_clock::now() < end) {
    if (more) {
      // It may look at the world outside, which may keep it waiting, and reports do not wait for that.
      lock.Unlock();
      const bool enough = more();
      lock.Lock();
      if (enough || machine_.ended()) break;
    }
    // Woken by the watcher; the short waits are for `more`.
    changed_.WaitUntil(mutex_, std::min(end, std::chrono::steady_clock::now() +
                                                 std::chrono::milliseconds(more ? 20 : 1000)));
  }
  return machine_.ended();
}

bool Task::AwaitWord(const agent::ProcessRef& init, Duration patience) {
  if (WaitEnded(patience)) return true;
  if (IsAlive(init.pid(), init.start_time())) return false;
  spdlog::warn("task {}: its processes are gone, and its shim has not written how they ended", name_);
  // Of one that is in its image a kill has nothing to end, and would only have that taken for an end by
  // order.
  const bool committing = Record().dump().committing();
  const auto enough = [&] { return host_.stopping || (interrupt_ && !committing); };
  while (!enough() && !WaitEnded(patience, enough)) {
  }
  return true;
}

void Task::RemoveTraces() {
  host_.job_tasks.Remove(outside_);
  if (absl::Status status = freezer().RemoveCgroup(outside_); !status.ok()) {
    spdlog::warn("task {}: {}", name_, std::string(status.message()));
  }
  if (absl::Status status = host_.fence.For(outside_).Remove(); !status.ok())
    spdlog::warn("task {}: {}", name_, std::string(status.message()));
  FaultHere<"agent.forget.cgroup: the cgroup of a forgotten task is gone, its folder is not">();
  bool over = false;
  uid_t uid = 0;
  {
    MutexLock lock(mutex_);
    // Only after an end of the job's own: after any other it may continue from a checkpoint, here or
    // elsewhere.
    over = record_.report().phase() == v1::EXITED && record_.report().own_end() && !record_.was_to_leave();
    uid = record_.spec().uid();
  }
  RemoveRestoreFolders();
  if (HasRestored(folder_) || HasRestored(RehearsalFolder()))
    host_.leftovers.Add(uid, [names = TemporaryNames(outside_)] { RemoveTemporary(names); });
  if (over) SetTmpdirAside();
  // Last: an agent that dies before finds the task again, and is told again to forget it.
  host_.forgotten->Take(folder_);
}

void Task::RemoveRestoreFolders() {
  const auto removed = [&](const std::string& folder) {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
    if (error) spdlog::warn("task {}: remove {}: {}", name_, folder, error.message());
    return !error;
  };
  removed(PlainFolder());
  const std::string united = Record().united();
  if (united.empty() || !removed(united)) return;
  MutexLock lock(mutex_);
  record_.clear_united();
  Persist();
}

// At once its name is free for the job's next start. How much there is to remove is up to the job, and so is
// whether that ever ends. Returns what it is called now; empty: it stays.
std::string Task::SetTmpdirAside() {
  const agent::TaskRecord record = Record();
  // What has the name is that one's.
  if (host_.job_tasks.HasLater(outside_, NamesIn(record), id_.incarnation)) return "";
  const uid_t uid = record.spec().uid();
  const gid_t gid = record.spec().gid();
  const std::string path = NamesIn(record).Tmpdir(uid);
  // Its other name is known before it has it: an agent that dies in the middle leaves it to the next.
  const std::string note = folder_ + "/" + kRemovedNote;
  std::string aside = ReadFile(note).value_or("");
  if (aside.empty()) {
    std::random_device random;
    aside = absl::StrFormat("/tmp/siding-removed-%08x%08x", random(), random());
    if (const absl::Status noted = WriteFileAtomically(note, aside, 0600); !noted.ok())
      spdlog::warn("task {}: {}", name_, std::string(noted.message()));
    FaultHere<"agent.tmpdir: it is noted which name a job's temporary folder gets to be removed">();
  }
  const absl::Status moved = MoveUserFolder(path, aside, uid, gid);
  if (!moved.ok() && !absl::IsNotFound(moved))
    spdlog::warn("task {}: {}; it is left there", name_, std::string(moved.message()));
  return aside;
}

void Task::Watch(UniqueFd shim) {
  if (watcher_.joinable()) watcher_.join();
  watcher_ = std::thread([this, shim = std::move(shim)] {
    for (ShimWait seen = ShimWait::kRunning; seen != ShimWait::kEnded;) {
      seen = WaitForShim(shim, wake_.get(), MemoryIsFenced() ? kCheckFenceMs : -1);
      if (seen == ShimWait::kWoken) return;
      if (seen == ShimWait::kRunning) CheckFence();
    }
    // A shim that Slurm killed with everything else of its step could not tidy up. Without the lock: how much
    // there is to remove is up to the job.
    if (externally_managed_ && access((folder_ + "/exit.json").c_str(), F_OK) != 0) {
      const std::string aside = SetTmpdirAside();
      const v1::JobSpec spec = Record().spec();
      if (!aside.empty()) host_.leftovers.Add(spec.uid(), RemovalOf(aside, spec.uid(), spec.gid()));
    }
    MutexLock lock(mutex_);
    // Judged on the worker: the last processes may take their time to end.
    Observe(task::ShimEnded{}).IgnoreError();
  });
}

}  // namespace siding
