// Processes as /proc shows them. All functions look at one moment: what they return may be gone already.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/files.h"
#include "common/units.h"

namespace siding {

// The fields of /proc/PID/stat that matter here.
struct ProcessStat {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';         // R, S, D, T (stopped), t (traced), Z ...
  uint64_t start_time = 0;  // clock ticks after boot
  uint64_t cpu_ticks = 0;   // user and system time
  int64_t threads = 0;      // a zombie with several is a process whose first thread alone has ended
};
std::optional<ProcessStat> ParseProcessStat(const std::string& text);
// nullopt: no such process.
std::optional<ProcessStat> ReadProcessStat(pid_t pid);

// True if that very process is there and no zombie.
bool IsAlive(pid_t pid, uint64_t start_time);

// A descriptor that means that very process for as long as it is open.
absl::StatusOr<UniqueFd> OpenPidfd(pid_t pid);

// Of the processes beside this one that have the file behind this process's `fd` open the oldest.
std::optional<ProcessStat> OldestWithOpen(int fd);

// The process and everything below it, itself first, without those that have ended. Empty if it is gone.
std::vector<pid_t> ProcessTree(pid_t root);

// A number in /proc/PID/status, such as "TracerPid". For a line with several the last. -1: none.
int64_t ReadStatusNumber(pid_t pid, const std::string& key);

// A process of which some thread is traced (ptrace), and by which process. One that this process's /proc does
// not show, in a pid namespace further outside, is not found.
struct Traced {
  pid_t pid = 0;
  pid_t tracer = 0;
  bool operator==(const Traced&) const = default;
};
// Those of the tree; each thread can have a tracer of its own.
std::vector<Traced> FindTraced(pid_t root);

// Its command line; empty if it is gone. A process can write there what it likes.
std::vector<std::string> CommandLineOf(pid_t pid);

// True if the process works in that very folder. False if either is gone, or may not be looked at.
bool WorksIn(pid_t pid, const std::string& folder);

// The job's command: the first process in the namespace of `init` beside it, whose number there is `first`
// (names.h), or 2 where another could not be had. 0 if it is gone.
pid_t MainProcess(pid_t init, int first);

// True if the process has a handler for the signal, or takes it from those that it has blocked: it is neither
// ended by it nor without notice of it. False if it is gone.
bool HearsSignal(pid_t pid, int signal);

// True if a signal (SIGSTOP) has stopped it, frozen or not. False if it is gone.
bool IsStoppedBySignal(pid_t pid);

// The name of its program, "python3"; "?" if it has ended.
std::string ProgramOf(pid_t pid);
// As messages name it: "process 17 (python3)".
std::string NameOf(pid_t pid);

// Proportional set size of the tree, or its resident size where the kernel does not tell the former. The
// kernel holds a process's map of memory meanwhile, and a process can keep it for as long as it likes: to be
// called where no other work waits. `at` is the process that is being looked at, 0 at the end.
Bytes TreeMemory(pid_t root, std::atomic<pid_t>& at);

// Returns when the memory of the tree's processes can be read without waiting.
void AwaitMemory(pid_t root);

// Its resident size, in which what processes share counts for each of them. Never waits for them.
Bytes TreeResident(pid_t root);

// Of one process; 0: it has ended.
int64_t ThreadsOf(pid_t pid);
std::vector<pid_t> ThreadIdsOf(pid_t pid);

// RAM that programs could have now, of the machine. 0: the kernel does not tell.
Bytes AvailableMemory();

// Calls `done` until it is true, first at once and then every few milliseconds; false if time runs out.
bool PollUntil(const std::function<bool()>& done, Duration timeout);

}  // namespace siding
