// Off the GPUs and back. A task holds its GPUs from its start until it has been drained and frozen, or has
// ended. What is drained can be frozen or dumped; whatever fails on the way, the task is back on its GPUs.
#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "agent/checkpoint/precheck.h"
#include "agent/gpu/allocated_gpus.h"
#include "agent/gpu/drain.h"
#include "agent/gpu/drainable.h"
#include "agent/gpu/node_gpus.h"
#include "agent/node/task.h"
#include "agent/os/processes.h"
#include "common/fault.h"
#include "common/since.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

constexpr Duration kProbePatience = std::chrono::minutes(2);
// A running kernel has so long to end where there is no deadline; a transfer that takes
// longer hangs.
constexpr Duration kLockPatience = std::chrono::seconds(60);
constexpr Duration kTransferPatience = std::chrono::minutes(10);
// Until several processes are locked together, before that has been measured for this task. Seen: 0.05 to 2.9
// s.
constexpr Duration kUsualLock = std::chrono::seconds(3);
// The driver's refusals to put a state back that make it lost. Those that may have another reason than the
// state (a fabric manager that is started again, a GPU that is reset) count once in so long.
constexpr int kMostRefusals = 3;
constexpr Duration kRefusalPause = std::chrono::minutes(2);

GpuTimes TimesFor(Duration lock_patience) {
  return {lock_patience > Duration(0) ? std::min(lock_patience, kLockPatience) : kLockPatience,
          kTransferPatience};
}

// There may be room, another GPU, or a driver another time. Anything else that fails, the driver has refused.
bool MayPass(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

using Uuids = google::protobuf::RepeatedPtrField<std::string>;

std::vector<std::string> ToVector(const Uuids& uuids) { return {uuids.begin(), uuids.end()}; }

}  // namespace

GpuFacts Task::Gpus() const {
  const v1::JobSpec& spec = record_.spec();
  GpuFacts facts;
  facts.used = UsesGpus();
  facts.assigned = host_.AssignsGpus();
  facts.externally_managed = record_.externally_managed();
  facts.cluster_manager = spec.cluster_manager();
  facts.unknown = record_.gpus_unknown();
  facts.allocated = ToVector(record_.allocated_gpus());
  facts.nodes = spec.nodes();
  facts.gpus = spec.per_node().gpus();
  facts.nodes_own = host_.gpus;
  return facts;
}

// A task whose GPUs are not known runs on them and stays there: WhyNotDrainable() says why.
void Task::NoteAllocatedGpus(const GpuAllocation& said, v1::JobSpec& spec) {
  const auto listed = ReadGpuList(said.list);
  if (listed.ok() && listed->empty()) return;
  spec.mutable_per_node()->set_slots(1);
  spec.mutable_per_node()->set_gpus(listed.ok() ? static_cast<int>(listed->size()) : 1);
  if (!host_.AssignsGpus()) return record_.set_gpus_unknown("this node's agent saw no GPUs when it started");
  const auto given = FindAllocatedGpus(said, host_.gpus->machine(), host_.gpus->minors());
  if (!given.ok()) return record_.set_gpus_unknown(std::string(given.status().message()));
  for (const std::string& uuid : *given) {
    if (host_.gpus->NameOf(uuid).empty())
      return record_.set_gpus_unknown("it has " + uuid + ", which this node's agent was told to leave alone");
  }
  record_.mutable_allocated_gpus()->Assign(given->begin(), given->end());
  record_.set_only_allocated_gpus(!said.devices.empty());
}

// Those that its program could find: the driver wants to hear of all of them at a refill, and of no others.
std::vector<std::string> Task::GpusInReach() const {
  return record_.only_allocated_gpus() ? ToVector(record_.allocated_gpus()) : host_.gpus->machine();
}

// Those that it has from the cluster manager, even if others have them: that manager's accounts count.
absl::Status Task::TakeAllocatedGpus() {
  MutexLock lock(mutex_);
  agent::GpuRecord& gpu = *record_.mutable_gpu();
  const int given = record_.allocated_gpus_size();
  if (gpu.drained() && !record_.gpus_unknown().empty())
    return absl::FailedPreconditionError("it is off its GPUs, and " + record_.gpus_unknown());
  if (gpu.drained() && given != gpu.before_size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("it is off its ", gpu.before_size(), " GPUs, and has been given ", given));
  }
  if (given == 0) return absl::OkStatus();
  host_.gpus->Keep(outside_, ToVector(record_.allocated_gpus()));
  *gpu.mutable_held() = record_.allocated_gpus();
  *record_.mutable_report()->mutable_gpus() = record_.allocated_gpus();
  Persist();
  return absl::OkStatus();
}

// Those that it had before, if they are free. Which they are is remembered before anything runs on them.
absl::Status Task::TakeGpus() {
  // The agent's own measuring is no reason to refuse a job.
  if (UsesGpus() && host_.AssignsGpus())
    PollUntil([&] { return Interrupted() || !host_.gpus->IsBeingProbed(); }, kProbePatience);
  if (externally_managed_) return TakeAllocatedGpus();
  if (!UsesGpus() || !host_.AssignsGpus()) return absl::OkStatus();
  MutexLock lock(mutex_);
  agent::GpuRecord& gpu = *record_.mutable_gpu();
  SIDING_ASSIGN_OR_RETURN(const auto taken,
                          host_.gpus->Take(outside_, record_.spec().per_node().gpus(),
                                           ToVector(gpu.held().empty() ? gpu.before() : gpu.held())));
  gpu.mutable_held()->Assign(taken.begin(), taken.end());
  *record_.mutable_report()->mutable_gpus() = gpu.held();
  Persist();
  return absl::OkStatus();
}

// After a drain: remembers which descriptors of GPUs processes have that are no clients of the driver. A
// process that has come to a GPU meanwhile is a client, and the drain is to be undone.
absl::Status Task::NoteInheritedDescriptors() {
  const pid_t init = Init().pid();
  // Before the driver is asked: what a process opens behind this is not among them.
  const std::set<GpuDescriptor> open = OpenGpuDescriptors(init);
  SIDING_ASSIGN_OR_RETURN(const std::vector<pid_t> on_gpus,
                          ProcessesOnGpus(host_.gpus->driver(), ProcessTree(init)));
  if (!on_gpus.empty()) {
    return absl::UnavailableError(absl::StrCat("process ", on_gpus.front(),
                                               " began to use a GPU while the task was taken off its GPUs"));
  }
  agent::GpuRecord gpu = Record().gpu();
  // What a worker has inherited may keep memory of the GPU from being free.
  const Bytes used = open.empty() ? Bytes{} : host_.gpus->UsedNowBy(ToVector(gpu.held()), ProcessTree(init));
  if (used.value > gpu.bytes() / 2) {
    return absl::UnavailableError(absl::StrCat("its GPUs still hold ", FormatBytes(used),
                                               " after it was taken off them; process ", open.begin()->pid,
                                               " has descriptors of them"));
  }
  MutexLock lock(mutex_);
  record_.mutable_gpu()->clear_inherited();
  for (const GpuDescriptor& descriptor : open) {
    agent::GpuDescriptor& inherited = *record_.mutable_gpu()->add_inherited();
    inherited.set_pid(descriptor.pid);
    inherited.set_start_time(descriptor.start_time);
    inherited.set_fd(descriptor.fd);
  }
  Persist();
  return absl::OkStatus();
}

// A process has opened a GPU since the drain. Told by descriptors, for the driver is not asked about
// processes that are frozen.
bool Task::HasComeToGpus(const agent::ProcessRef& init, const agent::GpuRecord& gpu) {
  std::set<GpuDescriptor> open = OpenGpuDescriptors(init.pid());
  for (const agent::GpuDescriptor& known : gpu.inherited())
    open.erase({known.pid(), known.start_time(), known.fd()});
  return !open.empty();
}

// But not those that a process is still on, after a refill that failed half-way: they are not free.
void Task::GiveGpusBack() {
  if (!host_.AssignsGpus()) return;
  const agent::ProcessRef& init = record_.init();
  if (UsesGpus() && IsAlive(init.pid(), init.start_time()) && HasComeToGpus(init, record_.gpu())) return;
  record_.mutable_gpu()->clear_held();
  record_.mutable_report()->clear_gpus();
  record_.mutable_report()->clear_gpu_memory();
  host_.gpus->Release(outside_);
}

absl::Status Task::CheckDrainable(pid_t init) {
  const auto is_client = [this](pid_t pid) {
    const auto state = host_.gpus->driver().State(pid);
    return !state.ok() || *state != GpuState::kUnused;
  };
  GpuFacts facts;
  {
    MutexLock lock(mutex_);
    facts = Gpus();
  }
  const std::string why = WhyNotDrainable(facts, init, is_client);
  return why.empty() ? absl::OkStatus() : absl::FailedPreconditionError(why);
}

// Until all were locked, the processes ran: they may share memory by now, or be more. From here on they
// cannot.
absl::Status Task::CheckLocked(pid_t init) {
  SIDING_RETURN_IF_ERROR(CheckDrainable(init));
  for (pid_t pid : ProcessTree(init)) {
    SIDING_ASSIGN_OR_RETURN(const GpuState state, host_.gpus->driver().State(pid));
    if (state == GpuState::kRunning)
      return absl::UnavailableError(absl::StrCat("process ", pid, " began to use a GPU meanwhile"));
  }
  return absl::OkStatus();
}

absl::Status Task::LeaveGpus(Duration patience) {
  const pid_t init = Init().pid();
  // What follows reads the memory of its processes, and the driver their state.
  if (UsesGpus()) {
    SIDING_RETURN_IF_ERROR(InTime([init] {
      AwaitMemory(init);
      return absl::OkStatus();
    }));
  }
  SIDING_RETURN_IF_ERROR(CheckDrainable(init));
  if (!UsesGpus()) return absl::OkStatus();
  std::vector<std::string> held;
  {
    MutexLock lock(mutex_);
    if (record_.gpu().drained()) return absl::OkStatus();
    held = ToVector(record_.gpu().held());
  }
  const Bytes bytes = host_.gpus->UsedNowBy(held, ProcessTree(init));
  if (const Bytes room = AvailableMemory(); room < bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("its GPUs hold ", FormatBytes(bytes),
                                                     ", and of the node's RAM only ", FormatBytes(room),
                                                     " are free"));
  }
  {
    MutexLock lock(mutex_);
    agent::GpuRecord& gpu = *record_.mutable_gpu();
    gpu.set_drained(true);
    *gpu.mutable_before() = gpu.held();
    const std::vector<std::string> in_reach = GpusInReach();
    gpu.mutable_machine()->Assign(in_reach.begin(), in_reach.end());
    gpu.set_bytes(bytes.value);
    gpu.set_chip(gpu.held().empty() ? "" : host_.gpus->NameOf(gpu.held(0)));
    Persist();
  }
  const auto huge = host_.huge_pages ? host_.huge_pages->Take() : nullptr;
  const auto start = std::chrono::steady_clock::now();
  // The driver takes the host's memory for it as the task's own, in more than one piece at a time.
  RaiseFence(bytes + bytes + kRoomForDriver);
  FaultHere<"agent.gpu.drain: a task is about to leave its GPUs, which is remembered">();
  GpuStall stall;
  const DrainControl control{.cancelled = [this] { return IsCalledOff(); },
                             .when_locked = [this, init] { return CheckLocked(init); }};
  const absl::Status status =
      DrainGpus(host_.gpus->driver(), ProcessTree(init), TimesFor(patience), control, &stall);
  FaultHere<"agent.gpu.drained: a task is off its GPUs">();
  {
    MutexLock lock(mutex_);
    if (status.ok()) {
      spdlog::info("task {}: its GPUs were locked in {}, {} tries", name_, FormatDuration(stall.lock),
                   stall.tries);
      // What stands still before is predicted apart from what grows with the bytes.
      if (bytes > Bytes{0}) host_.rates->Add(Medium::kGpu, Transfer::kDump, bytes, Since(start) - stall.lock);
    } else if (!absl::IsDataLoss(status)) {
      record_.mutable_gpu()->set_drained(false);
    }
    // A task that was hard to lock will be so again. How long a failed try was given says nothing.
    const Duration before = gpu_lock_.value_or(Duration(0));
    gpu_lock_ = status.ok() ? std::max(stall.lock, before / 2) : std::max(before, kUsualLock);
    Persist();
  }
  return status.ok() ? NoteInheritedDescriptors() : status;
}

absl::Status Task::ReturnToGpus() {
  if (!UsesGpus()) return absl::OkStatus();
  agent::GpuRecord gpu = Record().gpu();
  if (!gpu.drained()) return absl::OkStatus();
  if (!host_.AssignsGpus()) {
    return absl::UnavailableError(absl::StrCat("it is off its GPUs, and there are none here: ",
                                               host_.gpus == nullptr ? "" : host_.gpus->problem()));
  }
  if (gpu.held().empty()) {
    SIDING_RETURN_IF_ERROR(TakeGpus());
    gpu = Record().gpu();
  }
  for (const std::string& held : gpu.held()) {
    if (const std::string chip = host_.gpus->NameOf(held); !gpu.chip().empty() && chip != gpu.chip()) {
      return absl::FailedPreconditionError(
          absl::StrCat("its GPU state is of ", gpu.chip(), " and cannot continue on ", chip));
    }
  }
  std::vector<std::string> in_reach;
  {
    MutexLock lock(mutex_);
    in_reach = GpusInReach();
  }
  const std::vector<GpuMove> moves =
      PlanMoves(ToVector(gpu.before()), ToVector(gpu.held()), ToVector(gpu.machine()), in_reach);
  const std::vector<pid_t> tree = ProcessTree(Init().pid());
  SIDING_ASSIGN_OR_RETURN(const std::vector<pid_t> back, ProcessesOnGpus(host_.gpus->driver(), tree));
  // A restore for which the GPU's memory does not suffice strands the process.
  if (back.empty()) SIDING_RETURN_IF_ERROR(host_.gpus->CheckFree(ToVector(gpu.held()), Bytes{gpu.bytes()}));
  const auto start = std::chrono::steady_clock::now();
  SIDING_RETURN_IF_ERROR(FaultAt<"agent.gpu.refill: a task is about to return to its GPUs">());
  RaiseFence(kRoomForDriver);  // after a restore the fence is closed around what CRIU has made
  const absl::Status status = RefillGpus(host_.gpus->driver(), tree, moves, TimesFor(Duration(0)));
  FaultHere<"agent.gpu.refilled: a task is back on its GPUs, which is not yet remembered">();
  if (!status.ok()) return MayPass(status) ? status : NoteRefusal(status);
  if (gpu.bytes() > 0) host_.rates->Add(Medium::kGpu, Transfer::kRestore, Bytes{gpu.bytes()}, Since(start));
  MutexLock lock(mutex_);
  agent::GpuRecord& now = *record_.mutable_gpu();
  now.set_drained(false);
  now.clear_before();
  now.clear_machine();
  now.clear_bytes();
  now.clear_chip();
  now.clear_inherited();
  now.clear_refusals();
  Persist();
  return absl::OkStatus();
}

// The driver does not put back what it took. It is asked again, for the driver may be at fault in passing;
// then the controller is told, which has the task ended and its job restored from an image. kInternal.
absl::Status Task::NoteRefusal(const absl::Status& why) {
  const bool is_final = absl::IsUnimplemented(why) || absl::IsFailedPrecondition(why) ||
                        absl::IsInvalidArgument(why) || absl::IsDataLoss(why);
  const auto now = std::chrono::steady_clock::now();
  MutexLock lock(mutex_);
  if (!is_final && refused_at_ && now - *refused_at_ < kRefusalPause)
    return absl::InternalError(why.message());
  refused_at_ = now;
  agent::GpuRecord& gpu = *record_.mutable_gpu();
  gpu.set_refusals(gpu.refusals() + 1);
  if (absl::IsDataLoss(why) || gpu.refusals() >= kMostRefusals) {
    record_.mutable_report()->set_gpu_state_lost(
        absl::StrCat("what it had on its GPUs cannot be put back: ", std::string(why.message())));
    spdlog::error("task {}: {}", name_, record_.report().gpu_state_lost());
  }
  Persist();
  return absl::InternalError(why.message());
}

// A suspend or a dump that is under way is not wanted any more.
bool Task::IsCalledOff() {
  MutexLock lock(mutex_);
  return Interrupted() || machine_.called_off();
}

// How long its processes will stand still before a drain begins to move anything.
Duration Task::ExpectedLock(size_t processes) {
  MutexLock lock(mutex_);
  if (gpu_lock_) return *gpu_lock_;
  return processes > 1 ? kUsualLock : Duration(0);
}

// Parked as it was before, or because it cannot continue now. False, and it is running, if that fails; what
// is off its GPUs stays parked even so.
bool Task::FreezeAgain() {
  {
    MutexLock lock(mutex_);
    record_.set_frozen(true);
    Persist();
  }
  const absl::Status status = freezer().Freeze(outside_, Init().pid(), kFreezePatience);
  MutexLock lock(mutex_);
  if (status.ok()) {
    GiveGpusBack();
  } else {
    spdlog::error("task {}: {}", name_, std::string(status.message()));
    record_.set_frozen(false);
  }
  Persist();
  return status.ok() || record_.gpu().drained();
}

}  // namespace siding
