// What a task of Slurm's can say of its GPUs, for the registration.
#pragma once

#include <string>
#include <vector>

namespace siding {

// Of /dev/nvidia0, /dev/nvidia1 and so on in `folder` those that this process may open, "0,2"; it is in the
// task's cgroups. Empty if it may open all that there are.
std::string DevicesToOpen(const std::string& folder);

// The lines of the registration: none for a task that has no GPUs from Slurm. `environment`: "NAME=value".
std::string GpuLines(const std::vector<std::string>& environment, const std::string& devices);

}  // namespace siding
