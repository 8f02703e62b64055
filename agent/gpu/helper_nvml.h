// NVML inside the helper process: what GPUs there are, and what they hold.
#pragma once

#include "agent/gpu/nvml_api.h"
#include "agent/gpu/protocol.h"

namespace siding::gpu {

// Thread-safe after construction.
class Nvml {
 public:
  explicit Nvml(const char* library);
  // The GPU of that number into the answer, and how many there are; why not into its text, with result -1.
  void Describe(int index, Answer& answer) const;

 private:
  char problem_[sizeof Answer::text] = "";  // why it cannot be asked; "": it can
  nvml::GetCount get_count_ = nullptr;
  nvml::GetHandle get_handle_ = nullptr;
  nvml::GetText get_uuid_ = nullptr;
  nvml::GetText get_name_ = nullptr;
  nvml::GetNumber get_minor_ = nullptr;
  nvml::GetMemory get_memory_ = nullptr;
  nvml::GetUtilization get_utilization_ = nullptr;
  nvml::GetMig get_mig_ = nullptr;
  nvml::GetProcesses get_processes_ = nullptr;
};

}  // namespace siding::gpu
