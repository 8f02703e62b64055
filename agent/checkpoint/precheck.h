// What can be seen beforehand to make a dump fail.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <set>
#include <string>

#include "agent/criu/criu.h"

namespace siding {

// What stands in the way of a task's methods; empty texts: nothing is known of the kind.
struct Hindrances {
  std::string to_dump;  // as WhyNotDumpable() says it
  std::string timer;    // as FindTimer() says it; not looked for where to_dump is about srun or a tracer
};

// GPUs that are drained before the dump do not stand in its way.
enum class GpuDevices { kStay, kLeave };

// Why such a CRIU could not dump the tree, or would lose something of it ("process 17 (solver) uses
// io_uring"); empty: nothing is known against it. What comes and goes (queues.h) is asked for when a dump has
// stopped it. For root.
std::string WhyNotDumpable(pid_t root, const DumpingCriu& criu, GpuDevices gpus = GpuDevices::kStay);

// Both, by one look at the tree. For root.
Hindrances FindHindrances(pid_t root, const DumpingCriu& criu, GpuDevices gpus = GpuDevices::kStay);

// What of a tree a CriuKind::kOurs restores and no other does: the reason for which a kAny is refused it.
struct NeedOfOurs {
  std::string why;      // empty: nothing
  bool passes = false;  // by itself, as between two commands of a shell
};
// For root.
NeedOfOurs FindNeedOfOurs(pid_t root);

// A process of the tree is Slurm's srun, which talks to Slurm over the network all the time; its pid, 0 for
// none.
pid_t FindSrun(pid_t root);

// A descriptor of one of the GPU driver's devices, and the process that has it.
struct GpuDescriptor {
  pid_t pid = 0;
  uint64_t start_time = 0;  // of the process: pids are used again
  int fd = 0;
  auto operator<=>(const GpuDescriptor&) const = default;
};

// Those of the tree. A process that has one need not use a GPU: workers inherit them when they are forked.
std::set<GpuDescriptor> OpenGpuDescriptors(pid_t root);

// The reason for one descriptor, given where its link in /proc/PID/fd leads; empty: none.
std::string WhyNotDumpableLink(const std::string& target, bool is_device);

// The reason for one timerfd, given its text in /proc/PID/fdinfo; empty: none. CRIU restores one that repeats
// and has expired as one that is stopped, and in a frozen process it expires.
std::string WhyNotDumpableTimer(const std::string& fdinfo);

}  // namespace siding
