#include "agent/checkpoint/namespaces.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "agent/os/held.h"
#include "common/files.h"

namespace siding {
namespace {

struct Kind {
  const char* link;
  const char* of_init;
  const char* what;
};
constexpr std::array<Kind, 9> kKinds = {{{"user", "user", "user"},
                                         {"pid", "pid", "pid"},
                                         {"pid_for_children", "pid", "pid"},
                                         {"net", "net", "network"},
                                         {"uts", "uts", "uts"},
                                         {"ipc", "ipc", "ipc"},
                                         {"cgroup", "cgroup", "cgroup"},
                                         {"time", "time", "time"},
                                         {"time_for_children", "time", "time"}}};

// A mount of the queues in the thread's ipc namespace that is mounted nowhere.
UniqueFd MountMessageQueues() {
  const UniqueFd filesystem(fsopen("mqueue", FSOPEN_CLOEXEC));
  if (!filesystem.valid() || fsconfig(filesystem.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
    return UniqueFd();
  return UniqueFd(fsmount(filesystem.get(), FSMOUNT_CLOEXEC, 0));
}

std::string FirstName(int folder) {
  const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return "";
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(fdopendir(fd), closedir);
  while (const dirent* entry = dir ? readdir(dir.get()) : nullptr) {
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) return entry->d_name;
  }
  return "";
}

}  // namespace

TaskNamespaces::TaskNamespaces(pid_t init) {
  for (size_t i = 0; i < kKinds.size(); ++i)
    own_[i] = TargetOf(absl::StrCat("/proc/", init, "/ns/", kKinds[i].of_init));
}

std::string TaskNamespaces::WhyNotDumpable(const std::string& links) const {
  for (size_t i = 0; i < kKinds.size(); ++i) {
    const std::string is = TargetOf(absl::StrCat(links, "/", kKinds[i].link));
    if (is == own_[i]) continue;
    // A link leads nowhere where no process has been begun in a namespace for children, or where the process
    // is about to end: the first namespaces that it leaves are these.
    const bool for_children = std::strcmp(kKinds[i].link, kKinds[i].of_init) != 0;
    if (is.empty() && (!for_children || TargetOf(absl::StrCat(links, "/uts")).empty())) return "";
    return absl::StrCat("has a ", kKinds[i].what, " namespace of its own");
  }
  return "";
}

IpcState EnterIpcNamespace(pid_t pid) {
  IpcState state;
  const std::string link = absl::StrCat("/proc/", pid, "/ns/ipc");
  const bool own = TargetOf(link) != TargetOf("/proc/thread-self/ns/ipc");
  const UniqueFd space(open(link.c_str(), O_RDONLY | O_CLOEXEC));
  if (!space.valid() || unshare(CLONE_SYSVSEM) != 0 || (own && setns(space.get(), CLONE_NEWIPC) != 0))
    return state;
  const UniqueFd queues = MountMessageQueues();
  struct stat info {};
  if (queues.valid() && fstat(queues.get(), &info) == 0) state.message_queues = info.st_dev;
  if (!own) return state;
  if (queues.valid()) state.message_queue = FirstName(queues.get());
  seminfo semaphores = {};
  union {
    int value;
    seminfo* info;
  } argument = {};
  argument.info = &semaphores;
  state.has_semaphores = semctl(0, 0, SEM_INFO, argument) >= 0 && semaphores.semusz > 0;
  return state;
}

}  // namespace siding
