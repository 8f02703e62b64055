#include "agent/os/cgroups.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <sstream>

#include "absl/strings/str_split.h"
#include "agent/os/processes.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {

CgroupMounts FindCgroupMounts(const std::string& mountinfo) {
  // "36 35 98:0 /root /mount/point options... - type source super,options"
  CgroupMounts mounts;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string skipped, point, word, type, source, options;
    words >> skipped >> skipped >> skipped >> skipped >> point;
    while (words >> word && word != "-") {
    }
    words >> type >> source >> options;
    if (type == "cgroup2" && mounts.v2.empty()) mounts.v2 = point;
    if (type != "cgroup") continue;
    for (const auto option : absl::StrSplit(options, ',')) mounts.v1[std::string(option)] = point;
  }
  return mounts;
}

CgroupMounts ReadCgroupMounts() {
  const auto mountinfo = ReadFile("/proc/self/mountinfo");
  return FindCgroupMounts(mountinfo.ok() ? *mountinfo : "");
}

absl::Status WriteCgroupFile(const std::string& path, const std::string& text) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, "open " + path);
  if (write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return ErrnoError(errno, "write " + path);
  }
  return absl::OkStatus();
}

absl::Status RemoveCgroupFolder(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  int error = 0;
  const auto removed = [&] {
    error = rmdir(path.c_str()) == 0 ? 0 : errno;
    return error != EBUSY;
  };
  PollUntil(removed, std::chrono::seconds(2));
  return error == 0 || error == ENOENT ? absl::OkStatus() : ErrnoError(error, "remove " + path);
}

}  // namespace siding
