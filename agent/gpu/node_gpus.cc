#include "agent/gpu/node_gpus.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr auto kFresh = std::chrono::seconds(1);
// What the driver maps of /dev/nvidia-uvm for a program of its own accord.
constexpr uint64_t kDriversOwnUvm = 2 << 20;

std::string ProblemOf(GpuDriver& driver, const std::vector<GpuDevice>& devices) {
  for (const GpuDevice& device : devices) {
    if (device.mig) return absl::StrCat(device.uuid, " is cut into parts (MIG), which cannot be drained");
  }
  const auto state = driver.State(getpid());
  return state.ok() ? "" : std::string(state.status().message());
}

}  // namespace

NodeGpus::NodeGpus(std::unique_ptr<GpuDriver> driver, int most, const std::vector<std::string>& only)
    : driver_(std::move(driver)) {
  const auto devices = driver_->Devices();
  if (!devices.ok()) {
    problem_ = std::string(devices.status().message());
    return;
  }
  for (const GpuDevice& device : *devices) machine_.push_back(device.uuid);
  for (const GpuDevice& device : *devices) {
    if (count() >= most) break;
    if (!only.empty() && std::find(only.begin(), only.end(), device.uuid) == only.end()) continue;
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
  std::lock_guard lock(mutex_);
  std::vector<std::string> taken;
  const auto take = [&](const std::string& uuid) {
    const auto holder = holders_.find(uuid);
    const bool free = holder == holders_.end() || holder->second == task;
    const bool known = names_.contains(uuid);
    if (static_cast<int>(taken.size()) < count && free && known &&
        std::find(taken.begin(), taken.end(), uuid) == taken.end())
      taken.push_back(uuid);
  };
  std::for_each(preferred.begin(), preferred.end(), take);
  std::for_each(uuids_.begin(), uuids_.end(), take);
  if (static_cast<int>(taken.size()) < count) {
    return absl::ResourceExhaustedError(
        absl::StrCat("only ", taken.size(), " of ", uuids_.size(), " GPUs are free, not ", count));
  }
  std::erase_if(holders_, [&](const auto& held) { return held.second == task; });
  for (const std::string& uuid : taken) holders_[uuid] = task;
  return taken;
}

bool NodeGpus::IsBeingProbed() {
  std::lock_guard lock(mutex_);
  return std::any_of(holders_.begin(), holders_.end(),
                     [](const auto& held) { return held.second == kProbeTask; });
}

void NodeGpus::Keep(const std::string& task, const std::vector<std::string>& uuids) {
  std::lock_guard lock(mutex_);
  for (const std::string& uuid : uuids) holders_[uuid] = task;
}

void NodeGpus::GiveBack(const std::string& task) {
  std::lock_guard lock(mutex_);
  std::erase_if(holders_, [&](const auto& held) { return held.second == task; });
}

// Without the mutex: a driver that hangs must not keep tasks from being given GPUs, or from giving them back.
void NodeGpus::Look() {
  const auto devices = driver_->Devices();
  if (!devices.ok()) return;
  std::lock_guard lock(mutex_);
  for (const GpuDevice& device : *devices) used_[device.uuid] = device.used;
  used_seen_ = std::chrono::steady_clock::now();
}

Bytes NodeGpus::UsedNow(const std::vector<std::string>& uuids) {
  Look();
  return Used(uuids);
}

Bytes NodeGpus::Used(const std::vector<std::string>& uuids) {
  std::unique_lock lock(mutex_);
  if (std::chrono::steady_clock::now() - used_seen_ > kFresh) {
    used_seen_ = std::chrono::steady_clock::now();  // one asks, the others take what is known
    lock.unlock();
    Look();
    lock.lock();
  }
  Bytes sum;
  for (const std::string& uuid : uuids) sum += used_[uuid];
  return sum;
}

absl::Status NodeGpus::CheckFree(const std::vector<std::string>& uuids, Bytes needed) {
  SIDING_ASSIGN_OR_RETURN(const std::vector<GpuDevice> devices, driver_->Devices());
  Bytes free;
  std::string processes;
  for (const GpuDevice& device : devices) {
    if (std::find(uuids.begin(), uuids.end(), device.uuid) == uuids.end()) continue;
    free += device.free;
    for (pid_t pid : device.processes) absl::StrAppend(&processes, processes.empty() ? "" : ", ", pid);
  }
  if (free >= needed) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(FormatBytes(needed), " of GPU memory are needed and ", FormatBytes(free), " are free",
                   processes.empty() ? "" : absl::StrCat("; in use by the processes ", processes)));
}

std::string WhyNotDrainableMaps(const std::string& maps) {
  std::istringstream lines(maps);
  for (std::string line; std::getline(lines, line);) {
    if (!absl::EndsWith(line, "/dev/nvidia-uvm")) continue;
    char* rest = nullptr;
    const uint64_t begin = std::strtoull(line.c_str(), &rest, 16);
    const uint64_t end = std::strtoull(rest + 1, nullptr, 16);
    // Managed memory is mapped from this device in its full size.
    if (end - begin > kDriversOwnUvm)
      return "uses managed memory (cudaMallocManaged), which the GPU driver cannot save";
  }
  return "";
}

std::string WhyNotDrainable(const std::vector<pid_t>& tree) {
  for (pid_t pid : tree) {
    const auto maps = ReadFile(absl::StrCat("/proc/", pid, "/maps"));
    if (!maps.ok()) continue;
    if (std::string why = WhyNotDrainableMaps(*maps); !why.empty()) {
      return absl::StrCat("process ", pid, " ", why);
    }
    // MPS: its server has the context, not the program.
    const auto environment = ReadFile(absl::StrCat("/proc/", pid, "/environ"));
    const bool uses_gpu = absl::StrContains(*maps, "libcuda.so");
    std::string pipes = "/tmp/nvidia-mps";
    constexpr char kVariable[] = "CUDA_MPS_PIPE_DIRECTORY=";
    if (environment.ok()) {
      std::istringstream entries(*environment);
      for (std::string entry; std::getline(entries, entry, '\0');) {
        if (entry.rfind(kVariable, 0) == 0) pipes = entry.substr(sizeof kVariable - 1);
      }
    }
    if (uses_gpu && access((pipes + "/control").c_str(), F_OK) == 0)
      return absl::StrCat("process ", pid, " uses its GPU through MPS (", pipes, ")");
  }
  return "";
}

}  // namespace siding
