#include "agent/checkpoint/precheck.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/checkpoint/tracers.h"
#include "agent/os/held.h"
#include "agent/os/processes.h"
#include "common/files.h"

namespace siding {

std::string WhyNotDumpableLink(const std::string& target, bool is_device) {
  if (target == "anon_inode:[io_uring]") return "uses io_uring";
  if (target == "anon_inode:[perf_event]") return "uses perf_event";
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

constexpr char kTimer[] = "anon_inode:[timerfd]";

bool IsGpu(const std::string& name) { return name.rfind("/dev/nvidia", 0) == 0; }

// As the kernel knows the file already: a file system of the job's own is not asked.
bool IsDevice(const std::string& link) {
  struct statx info {};
  return statx(AT_FDCWD, link.c_str(), AT_STATX_DONT_SYNC, STATX_TYPE, &info) == 0 &&
         (S_ISCHR(info.stx_mode) || S_ISBLK(info.stx_mode));
}

// Calls `visit` for each descriptor of the tree, until it returns true.
void ForEachLink(
    pid_t root,
    const std::function<bool(pid_t pid, int fd, const std::string& target, bool is_device)>& visit) {
  for (pid_t pid : ProcessTree(root)) {
    const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
    std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
    if (!dir) continue;
    while (const dirent* entry = readdir(dir.get())) {
      const std::string link = folder + "/" + entry->d_name;
      const std::string name = TargetOf(link);
      if (name.empty()) continue;
      const bool device = name.rfind("/dev/", 0) == 0 && IsDevice(link);
      if (visit(pid, std::atoi(entry->d_name), name, device)) return;
    }
  }
}

}  // namespace

pid_t FindSrun(pid_t root) {
  for (pid_t pid : ProcessTree(root)) {
    if (ProgramOf(pid) == "srun") return pid;
  }
  return 0;
}

std::string WhyNotDumpable(pid_t root, GpuDevices gpus) {
  if (const pid_t srun = FindSrun(root); srun > 0) {
    return absl::StrCat(
        "process ", srun,
        " (srun) waits for a step of Slurm; ask for the step instead: srun --siding-preemptible");
  }
  if (std::string why = WhyTraced(root); !why.empty()) return why;
  std::string reason;
  ForEachLink(root, [&](pid_t pid, int fd, const std::string& target, bool is_device) {
    if (is_device && gpus == GpuDevices::kLeave && IsGpu(target)) return false;
    std::string why = WhyNotDumpableLink(target, is_device);
    if (target == kTimer)
      why = WhyNotDumpableTimer(ReadFile(absl::StrCat("/proc/", pid, "/fdinfo/", fd)).value_or(""));
    if (why.empty()) return false;
    reason = absl::StrCat("process ", pid, " (", ProgramOf(pid), ") ", why);
    return true;
  });
  return reason;
}

std::set<GpuDescriptor> OpenGpuDescriptors(pid_t root) {
  std::set<GpuDescriptor> open;
  std::optional<ProcessStat> stat;  // of the process whose descriptors come one after the other
  ForEachLink(root, [&](pid_t pid, int fd, const std::string& target, bool is_device) {
    if (!is_device || !IsGpu(target)) return false;
    if (!stat || stat->pid != pid) stat = ReadProcessStat(pid);
    if (stat) open.insert({pid, stat->start_time, fd});
    return false;
  });
  return open;
}

}  // namespace siding
