// Which GPUs of its machine a cluster manager has allocated to a task. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace siding {

// What is known of them from where the task is.
struct GpuAllocation {
  // As the cluster manager lists them: "0,2", "0-2", UUIDs; "" or "NoDevFiles": none. Numbers are places in
  // its own list of the machine's GPUs.
  std::string list;
  // Which of /dev/nvidia0, /dev/nvidia1 and so on the task may open: "0,2". Empty: all of them.
  std::string devices;
};

// The single names of a list: "0-2" becomes "0", "1", "2". kInvalidArgument names what is neither a number
// nor a range nor a UUID.
absl::StatusOr<std::vector<std::string>> ReadGpuList(const std::string& list);

// The UUIDs of the allocated GPUs. `machine`: those of all of its GPUs, in the driver's order; `minors`: by
// UUID, the numbers of their devices.
//
// What a task may open is what it has, whatever the cluster manager counts by. Where it may open everything,
// the numbers are those by which its program is to choose among the driver's.
absl::StatusOr<std::vector<std::string>> FindAllocatedGpus(const GpuAllocation& said,
                                                           const std::vector<std::string>& machine,
                                                           const std::map<std::string, int>& minors);

}  // namespace siding
