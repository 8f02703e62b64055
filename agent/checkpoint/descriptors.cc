#include "agent/checkpoint/descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "agent/os/held.h"
#include "agent/os/processes.h"

namespace siding {
namespace {

// By the name of the socket, which neither keeps it open nor asks a file system of the job's own.
std::string ProtocolOf(const std::string& link, uint64_t inode) {
  const UniqueFd name(open(link.c_str(), O_PATH | O_CLOEXEC));
  struct statx info {};
  if (!name.valid() ||
      statx(name.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &info) != 0)
    return "";
  if (!S_ISSOCK(info.stx_mode) || info.stx_ino != inode) return "";  // another file by now
  char protocol[64] = "";
  const ssize_t size = getxattr(absl::StrCat("/proc/self/fd/", name.get()).c_str(), "system.sockprotoname",
                                protocol, sizeof protocol - 1);
  return size > 0 ? protocol : "";
}

bool IsRefusal(int error) { return error == EACCES || error == EPERM; }

// One that is just ending cannot be looked into either.
bool IsRunning(pid_t pid) {
  const auto stat = ReadProcessStat(pid);
  return stat && stat->state != 'Z' && stat->state != 'X';
}

}  // namespace

std::string OpenDescriptor::link() const { return absl::StrCat("/proc/", pid, "/fd/", fd); }

std::string OpenDescriptor::fdinfo() const {
  return ReadFile(absl::StrCat("/proc/", pid, "/fdinfo/", fd)).value_or("");
}

OpenDescriptors FindDescriptors(const std::vector<pid_t>& tree) {
  OpenDescriptors found;
  std::set<uint64_t> sockets;
  for (const pid_t pid : tree) {
    const std::string folder = absl::StrCat("/proc/", pid, "/fd");
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
    if (!dir && IsRefusal(errno) && IsRunning(pid)) found.hidden = pid;
    while (const dirent* entry = dir ? readdir(dir.get()) : nullptr) {
      const std::string link = absl::StrCat(folder, "/", entry->d_name);
      OpenDescriptor one{pid, std::atoi(entry->d_name), TargetOf(link), 0, ""};
      if (one.target.empty() && entry->d_name[0] != '.' && IsRefusal(errno) && IsRunning(pid))
        found.hidden = pid;
      if (one.target.empty()) continue;
      unsigned long inode = 0;
      if (std::sscanf(one.target.c_str(), "socket:[%lu]", &inode) == 1) one.socket = inode;
      if (one.socket != 0 && sockets.insert(one.socket).second)
        one.protocol = ProtocolOf(one.link(), one.socket);
      found.all.push_back(std::move(one));
    }
  }
  return found;
}

UniqueFd Borrow(const OpenDescriptor& descriptor) {
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, descriptor.pid, 0)));
  if (!process.valid()) return UniqueFd();
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_getfd, process.get(), descriptor.fd, 0)));
}

}  // namespace siding
