#include "agent/gpu/node_gpus.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "agent/gpu/protocol.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr auto kFresh = std::chrono::seconds(1);

std::string ProblemOf(GpuDriver& driver, const std::vector<GpuDevice>& devices) {
  for (const GpuDevice& device : devices) {
    if (device.mig) return absl::StrCat(device.uuid, " is cut into parts (MIG), which cannot be drained");
  }
  const auto state = driver.State(getpid());
  return state.ok() ? "" : std::string(state.status().message());
}

template <typename Value>
bool Contains(const std::vector<Value>& values, const Value& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

void RemoveHolder(std::map<std::string, std::set<std::string>>& holders, const std::string& task) {
  for (auto& [uuid, tasks] : holders) tasks.erase(task);
  std::erase_if(holders, [](const auto& held) { return held.second.empty(); });
}

}  // namespace

NodeGpus::NodeGpus(std::unique_ptr<GpuDriver> driver, int most, const std::vector<std::string>& only)
    : driver_(std::move(driver)) {
  const auto devices = driver_->Devices();
  if (!devices.ok()) {
    problem_ = std::string(devices.status().message());
    return;
  }
  for (const GpuDevice& device : *devices) {
    machine_.push_back(device.uuid);
    if (device.minor >= 0) minors_[device.uuid] = device.minor;
  }
  for (const GpuDevice& device : *devices) {
    if (count() >= most) break;
    if (!only.empty() && !Contains(only, device.uuid)) continue;
    uuids_.push_back(device.uuid);
    names_[device.uuid] = device.name;
  }
  if (!uuids_.empty()) problem_ = ProblemOf(*driver_, *devices);
}

std::string NodeGpus::NameOf(const std::string& uuid) const {
  auto it = names_.find(uuid);
  return it == names_.end() ? "" : it->second;
}

absl::StatusOr<std::vector<std::string>> NodeGpus::Take(const std::string& task, int count,
                                                        const std::vector<std::string>& preferred) {
  MutexLock lock(mutex_);
  std::vector<std::string> taken;
  const auto take = [&](const std::string& uuid) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto holder = holders_.find(uuid);
    const bool free = holder == holders_.end() || holder->second == std::set<std::string>{task};
    const bool known = names_.contains(uuid);
    if (static_cast<int>(taken.size()) < count && free && known && !Contains(taken, uuid))
      taken.push_back(uuid);
  };
  std::for_each(preferred.begin(), preferred.end(), take);
  std::for_each(uuids_.begin(), uuids_.end(), take);
  if (static_cast<int>(taken.size()) < count) {
    return absl::ResourceExhaustedError(
        absl::StrCat("only ", taken.size(), " of ", uuids_.size(), " GPUs are free, not ", count));
  }
  RemoveHolder(holders_, task);
  for (const std::string& uuid : taken) holders_[uuid] = {task};
  return taken;
}

std::vector<std::string> NodeGpus::Idle() {
  Look();
  MutexLock lock(mutex_);
  std::vector<std::string> idle;
  for (const std::string& uuid : uuids_) {
    if (seen_[uuid].processes.empty()) idle.push_back(uuid);
  }
  return idle;
}

bool NodeGpus::IsBeingProbed() {
  MutexLock lock(mutex_);
  return std::any_of(holders_.begin(), holders_.end(),
                     [](const auto& held) { return held.second.contains(kProbeTask); });
}

void NodeGpus::Keep(const std::string& task, const std::vector<std::string>& uuids) {
  MutexLock lock(mutex_);
  for (const std::string& uuid : uuids) holders_[uuid].insert(task);
}

void NodeGpus::Release(const std::string& task) {
  MutexLock lock(mutex_);
  RemoveHolder(holders_, task);
}

// Without the mutex: a driver that hangs must not keep tasks from being given GPUs, or from giving them back.
void NodeGpus::Look() {
  const auto devices = driver_->Devices();
  if (!devices.ok()) return;
  MutexLock lock(mutex_);
  for (const GpuDevice& device : *devices) seen_[device.uuid] = device;
  seen_at_ = std::chrono::steady_clock::now();
}

void NodeGpus::LookIfOld() {
  {
    MutexLock lock(mutex_);
    if (std::chrono::steady_clock::now() - seen_at_ <= kFresh) return;
    seen_at_ = std::chrono::steady_clock::now();  // one asks, the others take what is known
  }
  Look();
}

Bytes NodeGpus::UsedNow(const std::vector<std::string>& uuids) {
  Look();
  return Used(uuids);
}

Bytes NodeGpus::Used(const std::vector<std::string>& uuids) {
  LookIfOld();
  MutexLock lock(mutex_);
  Bytes sum;
  for (const std::string& uuid : uuids) sum += seen_[uuid].used;
  return sum;
}

Bytes NodeGpus::UsedNowBy(const std::vector<std::string>& uuids, const std::vector<pid_t>& processes) {
  Look();
  return UsedBy(uuids, processes);
}

Bytes NodeGpus::UsedBy(const std::vector<std::string>& uuids, const std::vector<pid_t>& processes) {
  LookIfOld();
  MutexLock lock(mutex_);
  Bytes alone, share, own;
  bool told = false;
  for (const std::string& uuid : uuids) {
    const GpuDevice& device = seen_[uuid];
    const auto holders = holders_.find(uuid);
    const int64_t tasks = holders == holders_.end() ? 1 : static_cast<int64_t>(holders->second.size());
    if (tasks == 1) {
      alone += device.used;
      continue;
    }
    share += Bytes{device.used.value / tasks};
    for (const GpuProcess& process : device.processes) {
      if (!process.used || !Contains(processes, process.pid)) continue;
      told = true;
      own += *process.used;
    }
  }
  return alone + (told ? own : share);
}

std::string NodeGpus::FindOther(const std::vector<std::string>& uuids, const std::vector<pid_t>& processes) {
  LookIfOld();
  MutexLock lock(mutex_);
  for (const auto& [uuid, device] : seen_) {
    if (Contains(uuids, uuid)) continue;
    for (const GpuProcess& process : device.processes) {
      if (Contains(processes, process.pid)) return uuid;
    }
  }
  return "";
}

std::set<pid_t> NodeGpus::MayBeOnGpus(const std::vector<pid_t>& processes) {
  LookIfOld();
  MutexLock lock(mutex_);
  std::set<pid_t> on_gpus;
  bool all_told = true;
  for (const auto& [uuid, device] : seen_) {
    all_told &= device.processes.size() < gpu::kMostProcesses;
    for (const GpuProcess& process : device.processes) {
      if (Contains(processes, process.pid)) on_gpus.insert(process.pid);
    }
  }
  if (all_told && !on_gpus.empty()) return on_gpus;
  return {processes.begin(), processes.end()};
}

absl::Status NodeGpus::CheckFree(const std::vector<std::string>& uuids, Bytes needed) {
  SIDING_ASSIGN_OR_RETURN(const std::vector<GpuDevice> devices, driver_->Devices());
  Bytes free;
  std::string processes;
  for (const GpuDevice& device : devices) {
    if (!Contains(uuids, device.uuid)) continue;
    free += device.free;
    for (const GpuProcess& process : device.processes)
      absl::StrAppend(&processes, processes.empty() ? "" : ", ", process.pid);
  }
  if (free >= needed) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(FormatBytes(needed), " of GPU memory are needed and ", FormatBytes(free), " are free",
                   processes.empty() ? "" : absl::StrCat("; in use by the processes ", processes)));
}

}  // namespace siding
