#include "agent/checkpoint/precheck.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/checkpoint/descriptors.h"
#include "agent/checkpoint/kernel_state.h"
#include "agent/checkpoint/namespaces.h"
#include "agent/checkpoint/timers.h"
#include "agent/checkpoint/tracers.h"
#include "agent/os/held.h"
#include "agent/os/processes.h"
#include "common/files.h"

namespace siding {

std::string WhyNotDumpableLink(const std::string& target, bool is_device) {
  if (target == "anon_inode:[io_uring]") return "uses io_uring";
  if (target == "anon_inode:[perf_event]") return "uses perf_event";
  if (target == "anon_inode:[userfaultfd]") return "uses userfaultfd";
  if (target == "anon_inode:[landlock-ruleset]") return "has rules of landlock open";
  if (target.rfind("/secretmem", 0) == 0)
    return "uses memory that even the kernel does not read (memfd_secret)";
  if (target.rfind("anon_inode:bpf", 0) == 0 || target.rfind("anon_inode:[bpf", 0) == 0) return "uses bpf";
  if (!is_device) return "";
  static constexpr const char* kHarmless[] = {"/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
                                              "/dev/urandom", "/dev/tty",  "/dev/ptmx", "/dev/net/tun"};
  for (const char* name : kHarmless) {
    if (target == name) return "";
  }
  if (target.rfind("/dev/pts/", 0) == 0) return "";
  return "has the device " + target + " open";
}

std::string WhyNotDumpableTimer(const std::string& fdinfo) {
  unsigned flags = 0;
  unsigned long long ticks = 0, value[2] = {}, interval[2] = {};
  for (const absl::string_view text : absl::StrSplit(fdinfo, '\n')) {
    const std::string line(text);
    std::sscanf(line.c_str(), "ticks: %llu", &ticks);
    std::sscanf(line.c_str(), "settime flags: %o", &flags);
    std::sscanf(line.c_str(), "it_value: (%llu, %llu)", &value[0], &value[1]);
    std::sscanf(line.c_str(), "it_interval: (%llu, %llu)", &interval[0], &interval[1]);
  }
  const bool repeats = interval[0] != 0 || interval[1] != 0;
  const bool runs = ticks != 0 || value[0] != 0 || value[1] != 0;
  if (!repeats || !runs || (flags & TFD_TIMER_ABSTIME) != 0) return "";
  return "has a timer that repeats (timerfd), which would stand still";
}

namespace {

bool IsGpu(const std::string& name) { return name.rfind("/dev/nvidia", 0) == 0; }

// As the kernel knows the file already: a file system of the job's own is not asked.
bool IsDevice(const std::string& link) {
  struct statx info {};
  return statx(AT_FDCWD, link.c_str(), AT_STATX_DONT_SYNC, STATX_TYPE, &info) == 0 &&
         (S_ISCHR(info.stx_mode) || S_ISBLK(info.stx_mode));
}

constexpr char kEventfd[] = "anon_inode:[eventfd]";
constexpr char kPipe[] = "pipe:[";
constexpr int kDeadline = 6, kOfBpf = 7;  // scheduling policies

bool Same(pid_t one, pid_t other, int what) {
  return syscall(SYS_kcmp, one, other, what, 0, 0) <= 0;  // or one is gone
}

bool IsRoots(pid_t pid) {
  struct stat info {};
  return stat(absl::StrCat("/proc/", pid).c_str(), &info) == 0 && info.st_uid == 0;
}

// Or has ended.
bool IsEnding(pid_t pid, pid_t thread) {
  constexpr unsigned kExiting = 0x4;  // PF_EXITING, in include/linux/sched.h
  const auto stat = ReadFile(absl::StrCat("/proc/", pid, "/task/", thread, "/stat"));
  const size_t name_end = stat.ok() ? stat->rfind(')') : std::string::npos;
  unsigned flags = 0;
  return name_end == std::string::npos ||
         std::sscanf(stat->c_str() + name_end, ") %*c %*d %*d %*d %*d %*d %u", &flags) != 1 ||
         (flags & kExiting) != 0;
}

std::string JoinedGroup(int fd, const std::vector<MulticastGroup>& groups) {
  for (const MulticastGroup& group : groups) {
    group_filter asked = {};
    asked.gf_interface = group.interface;
    asked.gf_group = group.address;
    socklen_t size = sizeof asked;
    const int level = group.address.ss_family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
    if (getsockopt(fd, level, MCAST_MSFILTER, &asked, &size) == 0) return NameOf(group);
  }
  return "";
}

std::string Of(pid_t pid, const std::string& why) { return absl::StrCat(NameOf(pid), " ", why); }

std::string WhyNotTerminals(const std::vector<pid_t>& tree, CriuKind criu) {
  if (criu == CriuKind::kOurs) return "";
  std::vector<std::string> stats;
  for (const pid_t pid : tree) stats.push_back(ReadFile(absl::StrCat("/proc/", pid, "/stat")).value_or(""));
  const size_t at = FindForegroundEnded(stats);
  if (at == stats.size()) return "";
  return Of(tree[at], "is on a terminal whose foreground group has ended, which could not be restored");
}

// One look at a tree, in a thread of its own that goes to the tree's ipc namespace: see EnterIpcNamespace().
class Look {
 public:
  Look(pid_t root, DumpingCriu criu, GpuDevices gpus)
      : root_(root), criu_(criu), gpus_(gpus), namespaces_(root), ipc_(EnterIpcNamespace(root)) {}

  Hindrances Find() const {
    const std::vector<pid_t> tree = ProcessTree(root_);
    const OpenDescriptors descriptors = FindDescriptors(tree);
    return {WhyNotTree(tree, descriptors), FindTimer(tree, descriptors.all)};
  }

 private:
  std::string WhyNotTree(const std::vector<pid_t>& tree, const OpenDescriptors& descriptors) const {
    for (const pid_t pid : tree) {
      if (std::string why = WhyNotProcess(pid); !why.empty()) return Of(pid, why);
    }
    if (std::string why = WhyNotTerminals(tree, criu_.kind); !why.empty()) return why;
    if (descriptors.hidden != 0) return Of(descriptors.hidden, "may not be looked into by this node's agent");
    for (const OpenDescriptor& one : descriptors.all) {
      if (std::string why = WhyNotDescriptor(one); !why.empty()) return Of(one.pid, why);
    }
    if (std::string why = WhyNotMulticast(descriptors.all); !why.empty()) return why;
    if (!ipc_.message_queue.empty())
      return absl::StrCat("the POSIX message queue /", ipc_.message_queue, " would be lost");
    return "";
  }

  std::string WhyNotProcess(pid_t pid) const {
    const std::string folder = absl::StrCat("/proc/", pid);
    if (const auto stat = ReadProcessStat(pid); !stat || stat->state == 'Z') {
      for (const pid_t thread : ThreadIdsOf(pid)) {
        if (thread != pid && !IsEnding(pid, thread)) return "has ended its first thread and not the others";
      }
      return "";
    }
    if (std::string why = namespaces_.WhyNotDumpable(folder + "/ns"); !why.empty()) return why;
    const std::string status = ReadFile(folder + "/status").value_or("");
    if (std::string why = criu_.only_of ? WhyNotDumpableOwner(status, *criu_.only_of) : ""; !why.empty())
      return why;
    if (std::string why = WhyNotDumpableProgram(TargetOf(folder + "/exe")); !why.empty()) return why;
    if (std::string why = WhyNotDumpableProcFile(TargetOf(folder + "/cwd")); !why.empty()) return why;
    if (std::string why =
            WhyNotDumpablePersonality(ReadFile(folder + "/personality").value_or(""), criu_.kind);
        !why.empty())
      return why;
    if (std::string why = WhyNotDumpableShell(pid, ReadFile(folder + "/stat").value_or(""), status);
        !why.empty())
      return why;
    if (std::string why = WhyNotDumpableMaps(ReadFile(folder + "/maps").value_or("")); !why.empty())
      return why;
    return WhyNotThreads(pid);
  }

  std::string WhyNotThreads(pid_t pid) const {
    const bool may_have_others = IsRoots(pid);
    for (const pid_t thread : ThreadIdsOf(pid)) {
      const int policy = sched_getscheduler(thread) & ~SCHED_RESET_ON_FORK;
      if (policy == kDeadline || policy == kOfBpf) return "is scheduled by a deadline or a policy of its own";
      // What the thread of this look does not share is a list of operations that would be undone. One is
      // there from the second thread on: whether it is empty cannot be seen.
      if (ipc_.has_semaphores && !Same(gettid(), thread, KCMP_SYSVSEM))
        return "may have System V semaphores to put back at its end (SEM_UNDO), which would be forgotten";
      if (thread == pid) continue;
      // A thread that is ending has given up both, or the process itself has.
      const char* const own = !Same(pid, thread, KCMP_FS)      ? "a working folder of its own (CLONE_FS)"
                              : !Same(pid, thread, KCMP_FILES) ? "descriptors of its own (CLONE_FILES)"
                                                               : nullptr;
      if (own != nullptr && !IsEnding(pid, thread) && !IsEnding(pid, pid))
        return absl::StrCat("has a thread with ", own);
      if (!may_have_others) continue;
      const std::string links = absl::StrCat("/proc/", pid, "/task/", thread, "/ns");
      if (const std::string why = namespaces_.WhyNotDumpable(links); !why.empty())
        return "has a thread that " + why;
    }
    return "";
  }

  std::string WhyNotDescriptor(const OpenDescriptor& one) const {
    const bool device = absl::StartsWith(one.target, "/dev/") && IsDevice(one.link());
    if (device && gpus_ == GpuDevices::kLeave && IsGpu(one.target)) return "";
    if (std::string why = WhyNotDumpableLink(one.target, device); !why.empty()) return why;
    if (IsTimerfd(one)) return WhyNotDumpableTimer(one.fdinfo());
    if (one.target == kEventfd) return WhyNotDumpableEventfd(one.fdinfo(), criu_.kind);
    if (absl::StartsWith(one.target, kPipe)) return WhyNotDumpablePipe(one.fdinfo());
    if (!one.protocol.empty()) return WhyNotDumpableSocket(one.protocol);
    if (IsMessageQueue(one)) return absl::StrCat("has the POSIX message queue ", one.target, " open");
    if (std::string why = WhyNotDumpableProcFile(one.target); !why.empty()) return why;
    if (!absl::StartsWith(one.target, "/sys/fs/cgroup/")) return "";
    return WhyNotDumpableCgroupFile(one.target,
                                    ReadFile(absl::StrCat("/proc/", one.pid, "/cgroup")).value_or(""));
  }

  // Its name has no folder, unless somebody has mounted all of them.
  bool IsMessageQueue(const OpenDescriptor& one) const {
    const bool may_be = one.target.rfind('/') == 0 || absl::StartsWith(one.target, "/dev/mqueue/");
    struct statx info {};
    return may_be && ipc_.message_queues &&
           statx(AT_FDCWD, one.link().c_str(), AT_STATX_DONT_SYNC, STATX_TYPE, &info) == 0 &&
           S_ISREG(info.stx_mode) && makedev(info.stx_dev_major, info.stx_dev_minor) == *ipc_.message_queues;
  }

  std::string WhyNotMulticast(const std::vector<OpenDescriptor>& descriptors) const {
    const std::string net = absl::StrCat("/proc/", root_, "/net/");
    std::vector<MulticastGroup> groups = ParseIgmp(ReadFile(net + "igmp").value_or(""));
    const std::vector<MulticastGroup> others = ParseIgmp6(ReadFile(net + "igmp6").value_or(""));
    groups.insert(groups.end(), others.begin(), others.end());
    for (const OpenDescriptor& one : descriptors) {
      if (groups.empty()) break;
      if (!absl::StartsWith(one.protocol, "UDP") && !absl::StartsWith(one.protocol, "RAW")) continue;
      const UniqueFd fd = Borrow(one);
      const std::string group = fd.valid() ? JoinedGroup(fd.get(), groups) : "";
      if (!group.empty())
        return Of(one.pid,
                  absl::StrCat("gets what is sent to ", group, " (multicast), and would not any more"));
    }
    return "";
  }

  const pid_t root_;
  const DumpingCriu criu_;
  const GpuDevices gpus_;
  const TaskNamespaces namespaces_;
  const IpcState ipc_;
};

}  // namespace

pid_t FindSrun(pid_t root) {
  for (pid_t pid : ProcessTree(root)) {
    if (ProgramOf(pid) == "srun") return pid;
  }
  return 0;
}

NeedOfOurs FindNeedOfOurs(pid_t root) {
  const std::vector<pid_t> tree = ProcessTree(root);
  for (const pid_t pid : tree) {
    const std::string is = ReadFile(absl::StrCat("/proc/", pid, "/personality")).value_or("");
    if (std::string why = WhyNotDumpablePersonality(is, CriuKind::kAny); !why.empty()) return {Of(pid, why)};
  }
  if (std::string why = WhyNotTerminals(tree, CriuKind::kAny); !why.empty()) return {why, true};
  for (const OpenDescriptor& one : FindDescriptors(tree).all) {
    if (one.target != kEventfd) continue;
    if (std::string why = WhyNotDumpableEventfd(one.fdinfo(), CriuKind::kAny); !why.empty())
      return {Of(one.pid, why)};
  }
  return {};
}

Hindrances FindHindrances(pid_t root, const DumpingCriu& criu, GpuDevices gpus) {
  Hindrances found;
  if (const pid_t srun = FindSrun(root); srun > 0) {
    found.to_dump = absl::StrCat(
        "process ", srun,
        " (srun) waits for a step of Slurm; ask for the step instead: srun --siding-preemptible");
    return found;
  }
  found.to_dump = WhyTraced(root);
  if (!found.to_dump.empty()) return found;
  std::thread([&] { found = Look(root, criu, gpus).Find(); }).join();
  return found;
}

std::string WhyNotDumpable(pid_t root, const DumpingCriu& criu, GpuDevices gpus) {
  return FindHindrances(root, criu, gpus).to_dump;
}

std::set<GpuDescriptor> OpenGpuDescriptors(pid_t root) {
  std::set<GpuDescriptor> open;
  std::optional<ProcessStat> stat;  // of the process whose descriptors come one after the other
  for (const OpenDescriptor& one : FindDescriptors(ProcessTree(root)).all) {
    if (!IsGpu(one.target) || !IsDevice(one.link())) continue;
    if (!stat || stat->pid != one.pid) stat = ReadProcessStat(one.pid);
    if (stat) open.insert({one.pid, stat->start_time, one.fd});
  }
  return open;
}

}  // namespace siding
