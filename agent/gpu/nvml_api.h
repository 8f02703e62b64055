// The part of NVML (libnvidia-ml.so.1) that siding uses. Its header is not in the CUDA toolkit everywhere, so
// nothing here is checked against it; the functions are those of NVML 11 and newer, whose form is fixed by
// the suffix of their names.
#pragma once

namespace siding::nvml {

enum Result : int { kSuccess = 0 };
using Device = struct nvmlDevice_st*;

struct Memory {
  unsigned version = sizeof(Memory) | 2u << 24;
  unsigned long long total, reserved, free, used;  // bytes; reserved: the driver's own, in none of the others
};
struct Utilization {
  unsigned gpu, memory;  // per cent of the last interval
};
struct Process {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};

using Init = Result (*)();                                                // nvmlInit_v2
using GetCount = Result (*)(unsigned*);                                   // nvmlDeviceGetCount_v2
using GetHandle = Result (*)(unsigned index, Device*);                    // nvmlDeviceGetHandleByIndex_v2
using GetText = Result (*)(Device, char* text, unsigned size);            // nvmlDeviceGetUUID, ...GetName
using GetNumber = Result (*)(Device, unsigned*);                          // nvmlDeviceGetMinorNumber
using GetMemory = Result (*)(Device, Memory*);                            // nvmlDeviceGetMemoryInfo_v2
using GetUtilization = Result (*)(Device, Utilization*);                  // nvmlDeviceGetUtilizationRates
using GetMig = Result (*)(Device, unsigned* current, unsigned* pending);  // nvmlDeviceGetMigMode
using GetProcesses = Result (*)(Device, unsigned* count,
                                Process* processes);  // ...GetComputeRunningProcesses_v3

}  // namespace siding::nvml
