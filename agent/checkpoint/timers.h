// Timers that run on while their process is frozen: the cgroup freezer stops the process and no clock. One
// that ends meanwhile goes off when the process continues, as that of `timeout 20 solver`. A restored process
// has the time that was left.
//
// Seen are POSIX timers (timer_create), of which the kernel does not tell whether they are set, and timerfds.
// Of alarm() and setitimer() the kernel tells nobody but the process itself. Timers of CPU time stand still
// with it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "agent/checkpoint/descriptors.h"

namespace siding {

// "process 17 (timeout) has a POSIX timer on CLOCK_REALTIME", of the first that is found; empty: there is
// none. `descriptors` are the tree's. For root.
std::string FindTimer(const std::vector<pid_t>& tree, const std::vector<OpenDescriptor>& descriptors);

bool IsTimerfd(const OpenDescriptor& descriptor);

// What a process has by its text /proc/PID/timers: "a POSIX timer on CLOCK_REALTIME"; empty: none that runs
// on.
std::string PosixTimerThatRunsOn(const std::string& timers);

// The same of one timerfd, by its text in /proc/PID/fdinfo. One that is not set does not count, nor one that
// is set to a time of day: when that is does not depend on the process.
std::string TimerfdThatRunsOn(const std::string& fdinfo);

}  // namespace siding
