#include "agent/checkpoint/repair.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/os/cgroups.h"
#include "agent/os/held.h"
#include "agent/os/processes.h"
#include "common/files.h"

namespace siding {
namespace {

constexpr int kRepairOff = 0;

bool IsInRepair(int socket) {
  int value = 0;
  socklen_t size = sizeof value;
  if (getsockopt(socket, SOL_SOCKET, SO_PROTOCOL, &value, &size) != 0 || value != IPPROTO_TCP) return false;
  size = sizeof value;
  return getsockopt(socket, IPPROTO_TCP, TCP_REPAIR, &value, &size) == 0 && value == 1;
}

bool TakeOut(int socket) {
  if (!IsInRepair(socket) || setsockopt(socket, IPPROTO_TCP, TCP_REPAIR, &kRepairOff, sizeof kRepairOff) != 0)
    return false;
  // That has switched SO_REUSEADDR off, and what it was before is not to be seen in repair mode. With it a
  // server can listen at its port again as before; without it perhaps not.
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return true;
}

}  // namespace

int EndRepair(pid_t root) {
  int ended = 0;
  for (const pid_t pid : ProcessTree(root)) {
    const auto process = OpenPidfd(pid);
    const std::string folder = absl::StrCat("/proc/", pid, "/fd");
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
    while (const dirent* entry = process.ok() && dir ? readdir(dir.get()) : nullptr) {
      int number = 0;
      if (!absl::SimpleAtoi(entry->d_name, &number) ||
          !absl::StartsWith(TargetOf(absl::StrCat(folder, "/", entry->d_name)), "socket:["))
        continue;
      const UniqueFd socket(static_cast<int>(syscall(SYS_pidfd_getfd, process->get(), number, 0)));
      if (socket.valid() && TakeOut(socket.get())) ++ended;
    }
  }
  return ended;
}

void EndHold(const std::string& cgroup) {
  // One that is not there any more has no processes.
  if (!cgroup.empty()) WriteCgroupFile(cgroup + "/cgroup.freeze", "0").IgnoreError();
}

}  // namespace siding
