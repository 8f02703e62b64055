// Off the GPUs and back. A task holds its GPUs from its start until it has been drained and frozen, or has
// ended. What is drained can be frozen or dumped; whatever fails on the way, the task is back on its GPUs.
#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "agent/checkpoint/precheck.h"
#include "agent/gpu/drain.h"
#include "agent/gpu/given_gpus.h"
#include "agent/gpu/node_gpus.h"
#include "agent/host/task.h"
#include "agent/launch/processes.h"
#include "common/fault.h"
#include "common/since.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

constexpr Duration kProbePatience = std::chrono::minutes(2);
// A kernel that is running has so long to come to its end; a transfer that takes longer hangs.
constexpr GpuTimes kTimes{std::chrono::seconds(60), std::chrono::minutes(10)};

using Uuids = google::protobuf::RepeatedPtrField<std::string>;

std::vector<std::string> ToVector(const Uuids& uuids) { return {uuids.begin(), uuids.end()}; }

}  // namespace

std::string Task::WhyNotDrainable(pid_t init) {
  if (!UsesGpus()) {
    const bool has_one = record_.hosted() && HasGpuOpen(init);
    return has_one ? "it uses a GPU, and " + record_.spec().cluster_manager() + " has given it none" : "";
  }
  if (!host_.AssignsGpus()) {
    return host_.gpus == nullptr || host_.gpus->problem().empty() ? "this node's agent drains no GPUs"
                                                                  : host_.gpus->problem();
  }
  if (!host_.gpus->problem().empty()) return host_.gpus->problem();
  const std::vector<pid_t> tree = ProcessTree(init);
  if (std::string why = record_.hosted() ? WhyNotDrainableHosted(tree) : ""; !why.empty()) return why;
  return siding::WhyNotDrainable(tree);
}

// Its state would go on to GPUs that others have if it were somewhere else than it is thought to be.
std::string Task::WhyNotDrainableHosted(const std::vector<pid_t>& tree) {
  if (!record_.gpus_unknown().empty()) return record_.gpus_unknown();
  const std::string other = host_.gpus->FindOther(ToVector(record_.given_gpus()), tree);
  if (other.empty()) return "";
  return absl::StrCat("it uses ", other, ", which ", record_.spec().cluster_manager(),
                      " has not given to it");
}

// A task whose GPUs are not known runs on them and stays there: WhyNotDrainable() says why.
void Task::NoteGivenGpus(const GpusSaid& said, v1::JobSpec& spec) {
  const auto listed = ReadGpuList(said.list);
  if (listed.ok() && listed->empty()) return;
  spec.mutable_per_node()->set_slots(1);
  spec.mutable_per_node()->set_gpus(listed.ok() ? static_cast<int>(listed->size()) : 1);
  if (!host_.AssignsGpus()) return record_.set_gpus_unknown("this node's agent saw no GPUs when it started");
  const auto given = FindGivenGpus(said, host_.gpus->machine(), host_.gpus->minors());
  if (!given.ok()) return record_.set_gpus_unknown(std::string(given.status().message()));
  for (const std::string& uuid : *given) {
    if (host_.gpus->NameOf(uuid).empty())
      return record_.set_gpus_unknown("it has " + uuid + ", which this node's agent was told to leave alone");
  }
  record_.mutable_given_gpus()->Assign(given->begin(), given->end());
  record_.set_only_given_gpus(!said.devices.empty());
}

// Those that its program could find: the driver wants to hear of all of them at a refill, and of no others.
std::vector<std::string> Task::GpusInReach() const {
  return record_.only_given_gpus() ? ToVector(record_.given_gpus()) : host_.gpus->machine();
}

// Those that it has from the cluster manager, whoever else has them: that manager's own accounts count.
absl::Status Task::TakeGivenGpus() {
  std::lock_guard lock(mutex_);
  agent::GpuRecord& gpu = *record_.mutable_gpu();
  const int given = record_.given_gpus_size();
  if (gpu.drained() && !record_.gpus_unknown().empty())
    return absl::FailedPreconditionError("it is off its GPUs, and " + record_.gpus_unknown());
  if (gpu.drained() && given != gpu.before_size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("it is off its ", gpu.before_size(), " GPUs, and has been given ", given));
  }
  if (given == 0) return absl::OkStatus();
  host_.gpus->Keep(name_, ToVector(record_.given_gpus()));
  *gpu.mutable_held() = record_.given_gpus();
  *record_.mutable_report()->mutable_gpus() = record_.given_gpus();
  Persist();
  return absl::OkStatus();
}

// Those that it had before, if they are free. Which they are is remembered before anything runs on them.
absl::Status Task::TakeGpus() {
  // The agent's own measuring is no reason to refuse a job.
  if (UsesGpus() && host_.AssignsGpus())
    PollUntil([&] { return Interrupted() || !host_.gpus->IsBeingProbed(); }, kProbePatience);
  if (record_.hosted()) return TakeGivenGpus();
  if (!UsesGpus() || !host_.AssignsGpus()) return absl::OkStatus();
  std::lock_guard lock(mutex_);
  agent::GpuRecord& gpu = *record_.mutable_gpu();
  SIDING_ASSIGN_OR_RETURN(const auto taken,
                          host_.gpus->Take(name_, record_.spec().per_node().gpus(),
                                           ToVector(gpu.held().empty() ? gpu.before() : gpu.held())));
  gpu.mutable_held()->Assign(taken.begin(), taken.end());
  *record_.mutable_report()->mutable_gpus() = gpu.held();
  Persist();
  return absl::OkStatus();
}

// But not those that a process is still on, after a refill that failed half-way: they are not free.
void Task::GiveGpusBack() {
  if (!host_.AssignsGpus()) return;
  const pid_t init = record_.init().pid();
  if (UsesGpus() && IsAlive(init, record_.init().start_time()) && HasGpuOpen(init)) return;
  record_.mutable_gpu()->clear_held();
  record_.mutable_report()->clear_gpus();
  record_.mutable_report()->clear_gpu_memory();
  host_.gpus->GiveBack(name_);
}

absl::Status Task::LeaveGpus() {
  const pid_t init = record_.init().pid();
  if (std::string why = WhyNotDrainable(init); !why.empty()) return absl::FailedPreconditionError(why);
  if (!UsesGpus()) return absl::OkStatus();
  std::vector<std::string> held;
  {
    std::lock_guard lock(mutex_);
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
    std::lock_guard lock(mutex_);
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
  FaultHere<"agent.gpu.drain: a task is about to leave its GPUs, which is remembered">();
  const absl::Status status = DrainGpus(host_.gpus->driver(), ProcessTree(init), kTimes);
  FaultHere<"agent.gpu.drained: a task is off its GPUs">();
  std::lock_guard lock(mutex_);
  if (status.ok()) {
    if (bytes > Bytes{0}) host_.rates->Add(Medium::kGpu, Transfer::kDump, bytes, Since(start));
  } else if (!absl::IsDataLoss(status)) {
    record_.mutable_gpu()->set_drained(false);
    Persist();
  }
  return status;
}

absl::Status Task::ReturnToGpus() {
  if (!UsesGpus()) return absl::OkStatus();
  agent::GpuRecord gpu;
  {
    std::lock_guard lock(mutex_);
    gpu = record_.gpu();
  }
  if (!gpu.drained()) return absl::OkStatus();
  if (!host_.AssignsGpus()) {
    return absl::UnavailableError(absl::StrCat("it is off its GPUs, and there are none here: ",
                                               host_.gpus == nullptr ? "" : host_.gpus->problem()));
  }
  if (gpu.held().empty()) {
    SIDING_RETURN_IF_ERROR(TakeGpus());
    std::lock_guard lock(mutex_);
    gpu = record_.gpu();
  }
  for (const std::string& held : gpu.held()) {
    if (const std::string chip = host_.gpus->NameOf(held); !gpu.chip().empty() && chip != gpu.chip()) {
      return absl::FailedPreconditionError(
          absl::StrCat("its GPU state is of ", gpu.chip(), " and cannot go on on ", chip));
    }
  }
  const std::vector<GpuMove> moves =
      PlanMoves(ToVector(gpu.before()), ToVector(gpu.held()), ToVector(gpu.machine()), GpusInReach());
  const std::vector<pid_t> tree = ProcessTree(record_.init().pid());
  // A restore for which the GPU's memory does not suffice strands the process.
  if (!HasGpuOpen(record_.init().pid()))  // else some are back already
    SIDING_RETURN_IF_ERROR(host_.gpus->CheckFree(ToVector(gpu.held()), Bytes{gpu.bytes()}));
  const auto start = std::chrono::steady_clock::now();
  SIDING_RETURN_IF_ERROR(FaultAt<"agent.gpu.refill: a task is about to return to its GPUs">());
  const absl::Status status = RefillGpus(host_.gpus->driver(), tree, moves, kTimes);
  FaultHere<"agent.gpu.refilled: a task is back on its GPUs, which is not yet remembered">();
  if (!status.ok() && !absl::IsDataLoss(status)) return status;
  // It runs, and ends by the first call that needs what is lost.
  if (!status.ok()) spdlog::error("task {}: {}", name_, std::string(status.message()));
  if (gpu.bytes() > 0) host_.rates->Add(Medium::kGpu, Transfer::kRestore, Bytes{gpu.bytes()}, Since(start));
  std::lock_guard lock(mutex_);
  agent::GpuRecord& now = *record_.mutable_gpu();
  now.set_drained(false);
  now.clear_before();
  now.clear_machine();
  now.clear_bytes();
  now.clear_chip();
  Persist();
  return absl::OkStatus();
}

// Parked as it was before, or because it cannot go on now. False, and it is running, if that fails; what is
// off its GPUs stays parked even so.
bool Task::FreezeAgain() {
  {
    std::lock_guard lock(mutex_);
    record_.set_frozen(true);
    Persist();
  }
  const absl::Status status = freezer().Freeze(name_, record_.init().pid(), kFreezePatience);
  std::lock_guard lock(mutex_);
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
