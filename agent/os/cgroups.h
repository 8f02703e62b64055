// Files and folders of cgroups, of both versions.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"

namespace siding {

// Where cgroups are mounted, found in the text of /proc/self/mountinfo.
struct CgroupMounts {
  std::string v2;                         // empty: nowhere
  std::map<std::string, std::string> v1;  // by controller
};
CgroupMounts FindCgroupMounts(const std::string& mountinfo);
// Those of this machine.
CgroupMounts ReadCgroupMounts();

// In one write and in place, as these files want it.
absl::Status WriteCgroupFile(const std::string& path, const std::string& text);

// Waits a moment for processes that were killed, which leave their cgroup after their parent has been told.
// OK if there is no such folder, or no name.
absl::Status RemoveCgroupFolder(const std::string& path);

}  // namespace siding
