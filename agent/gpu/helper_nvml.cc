#include "agent/gpu/helper_nvml.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "agent/gpu/find_function.h"

namespace siding::gpu {

Nvml::Nvml(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::snprintf(problem_, sizeof problem_, "no GPU driver: %s", dlerror());
    return;
  }
  nvml::Init init = nullptr;
  if (!Find(library, "nvmlInit_v2", init) || !Find(library, "nvmlDeviceGetCount_v2", get_count_) ||
      !Find(library, "nvmlDeviceGetHandleByIndex_v2", get_handle_) ||
      !Find(library, "nvmlDeviceGetUUID", get_uuid_) || !Find(library, "nvmlDeviceGetName", get_name_) ||
      !Find(library, "nvmlDeviceGetMemoryInfo_v2", get_memory_)) {
    std::snprintf(problem_, sizeof problem_, "%s is too old", path);
    return;
  }
  // These are only good to know.
  Find(library, "nvmlDeviceGetMinorNumber", get_minor_);
  Find(library, "nvmlDeviceGetUtilizationRates", get_utilization_);
  Find(library, "nvmlDeviceGetMigMode", get_mig_);
  Find(library, "nvmlDeviceGetComputeRunningProcesses_v3", get_processes_);
  if (const nvml::Result result = init(); result != nvml::kSuccess)
    std::snprintf(problem_, sizeof problem_, "%s does not start: error %d", path, result);
}

void Nvml::Describe(int index, Answer& answer) const {
  answer.result = -1;
  if (problem_[0] != '\0') {
    std::memcpy(answer.text, problem_, sizeof answer.text);
    return;
  }
  unsigned count = 0;
  nvml::Device handle = nullptr;
  nvml::Memory memory{};
  Device& device = answer.device;
  if (const nvml::Result result = get_count_(&count); result != nvml::kSuccess) {
    std::snprintf(answer.text, sizeof answer.text, "the GPUs cannot be counted: error %d", result);
    return;
  }
  answer.state = static_cast<int32_t>(count);
  if (index >= answer.state) {
    answer.result = nvml::kSuccess;
    return;
  }
  if (get_handle_(static_cast<unsigned>(index), &handle) != nvml::kSuccess ||
      get_uuid_(handle, device.uuid, sizeof device.uuid) != nvml::kSuccess ||
      get_name_(handle, device.name, sizeof device.name) != nvml::kSuccess ||
      get_memory_(handle, &memory) != nvml::kSuccess) {
    std::snprintf(answer.text, sizeof answer.text, "GPU %d does not answer", index);
    return;
  }
  device.total = memory.total;
  device.used = memory.used;
  device.free = memory.free;
  nvml::Utilization utilization{};
  if (get_utilization_ != nullptr && get_utilization_(handle, &utilization) == nvml::kSuccess)
    device.utilization = utilization.gpu;
  unsigned minor = 0;
  const bool numbered = get_minor_ != nullptr && get_minor_(handle, &minor) == nvml::kSuccess;
  device.minor = numbered ? static_cast<int32_t>(minor) : -1;
  unsigned mig = 0, pending = 0;
  if (get_mig_ != nullptr && get_mig_(handle, &mig, &pending) == nvml::kSuccess) device.mig = mig;
  nvml::Process processes[kMostProcesses];
  unsigned found = kMostProcesses;
  if (get_processes_ != nullptr && get_processes_(handle, &found, processes) == nvml::kSuccess) {
    device.processes = std::min<unsigned>(found, kMostProcesses);
    for (unsigned i = 0; i < device.processes; ++i)
      device.process[i] = {static_cast<int32_t>(processes[i].pid), processes[i].used_memory};
  }
  answer.result = nvml::kSuccess;
}

}  // namespace siding::gpu
