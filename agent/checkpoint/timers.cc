#include "agent/checkpoint/timers.h"

#include <sys/timerfd.h>
#include <time.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/os/processes.h"
#include "common/files.h"

namespace siding {
namespace {

// Clocks of CPU time: the process's own, and those of any process or thread (clock_getcpuclockid), which are
// negative.
bool StandsStill(int clock) {
  return clock < 0 || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
}

bool IsTimeOfDay(int clock) { return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_ALARM; }

std::string NameOfClock(int clock) {
  switch (clock) {
    case CLOCK_REALTIME:
      return "CLOCK_REALTIME";
    case CLOCK_MONOTONIC:
      return "CLOCK_MONOTONIC";
    case CLOCK_BOOTTIME:
      return "CLOCK_BOOTTIME";
    case CLOCK_REALTIME_ALARM:
      return "CLOCK_REALTIME_ALARM";
    case CLOCK_BOOTTIME_ALARM:
      return "CLOCK_BOOTTIME_ALARM";
    case CLOCK_TAI:
      return "CLOCK_TAI";
    default:
      return absl::StrCat("clock ", clock);
  }
}

}  // namespace

bool IsTimerfd(const OpenDescriptor& descriptor) { return descriptor.target == "anon_inode:[timerfd]"; }

std::string PosixTimerThatRunsOn(const std::string& timers) {
  for (const absl::string_view line : absl::StrSplit(timers, '\n')) {
    int clock = 0;
    if (std::sscanf(std::string(line).c_str(), "ClockID: %d", &clock) == 1 && !StandsStill(clock))
      return absl::StrCat("a POSIX timer on ", NameOfClock(clock));
  }
  return "";
}

std::string TimerfdThatRunsOn(const std::string& fdinfo) {
  int clock = CLOCK_MONOTONIC;
  unsigned flags = 0;
  unsigned long long seconds = 0, nanoseconds = 0;  // that are left
  for (const absl::string_view text : absl::StrSplit(fdinfo, '\n')) {
    const std::string line(text);
    std::sscanf(line.c_str(), "clockid: %d", &clock);
    std::sscanf(line.c_str(), "settime flags: %o", &flags);
    std::sscanf(line.c_str(), "it_value: (%llu, %llu)", &seconds, &nanoseconds);
  }
  if (seconds == 0 && nanoseconds == 0) return "";
  if ((flags & TFD_TIMER_ABSTIME) != 0 && IsTimeOfDay(clock)) return "";
  return absl::StrCat("a timerfd on ", NameOfClock(clock));
}

std::string FindTimer(const std::vector<pid_t>& tree, const std::vector<OpenDescriptor>& descriptors) {
  for (const pid_t pid : tree) {
    const auto timers = ReadFile(absl::StrCat("/proc/", pid, "/timers"));
    const std::string timer = PosixTimerThatRunsOn(timers.value_or(""));
    if (!timer.empty()) return absl::StrCat(NameOf(pid), " has ", timer);
  }
  for (const OpenDescriptor& one : descriptors) {
    const std::string timer = IsTimerfd(one) ? TimerfdThatRunsOn(one.fdinfo()) : "";
    if (!timer.empty()) return absl::StrCat(NameOf(one.pid), " has ", timer);
  }
  return "";
}

}  // namespace siding
