// What users say with siding's flags, as values. Pure; no exceptions, no allocation.
#pragma once

#include <cstdint>

namespace siding::spank {

enum class Flag : int {
  kPreemptible,
  kCheckpointInterval,
  kCheckpointSignal,
  kStartBy,
  kNotice,
  kMaxPreemptions,
  kGpuCollectives,
  kAllowIoUring,
  kFiles,
  kConnections,
};

// Bits of Options::methods.
enum Method : unsigned { kSuspend = 1, kCheckpoint = 2, kMigrate = 4, kApp = 8, kKill = 16 };

// How a flag looks to the user.
struct FlagText {
  Flag flag;
  const char* name;      // without the dashes
  const char* argument;  // the name of its value
  const char* usage;
  bool may_be_bare;  // the value may be left out
};
inline constexpr FlagText kFlags[] = {
    {Flag::kPreemptible, "siding-preemptible", "METHODS",
     "the job may be preempted: by suspend,checkpoint,migrate,app,kill, or (without a value) as the policy "
     "allows",
     true},
    {Flag::kCheckpointInterval, "siding-checkpoint-interval", "DURATION",
     "checkpoint the job this often while it runs, such as 30m", false},
    {Flag::kCheckpointSignal, "siding-checkpoint-signal", "SIG[@GRACE]",
     "the program saves itself and ends on this signal, within GRACE (default 30s), such as USR1@2m", false},
    {Flag::kStartBy, "siding-start-by", "TIME|+DURATION",
     "on-demand job: it must run by then, such as +60s or 2026-05-01T12:00:00Z", false},
    {Flag::kNotice, "siding-notice", "DURATION",
     "send it SIGURG this long before it is frozen or dumped, such as 10s", false},
    {Flag::kMaxPreemptions, "siding-max-preemptions", "N", "preempt the job at most N times", false},
    {Flag::kGpuCollectives, "siding-gpu-collectives", "drainable|as-is",
     "drainable: NCCL is set so that a job of several processes can be taken off its GPUs", false},
    {Flag::kAllowIoUring, "siding-allow-io-uring", "yes|no",
     "yes: the job may use io_uring, and cannot be checkpointed while it does", false},
    {Flag::kFiles, "siding-files", "exact|append",
     "at a restore, a file that the job was appending to must be as it was (exact, the default), or may have "
     "been "
     "rotated or truncated (append)",
     false},
    {Flag::kConnections, "siding-connections", "keep|as-is",
     "keep: each task of srun has a network of its own, and the connections in it survive a checkpoint",
     false},
};

// All durations in microseconds, times in microseconds since 1970 UTC.
inline constexpr int64_t kSecond = 1'000'000;
inline constexpr int64_t kMostNoticeUs = 24 * 3600 * kSecond;

// What NCCL is told about how processes exchange data; see docs/user/gpu.md.
enum class Collectives : int { kUnsaid, kAsIs, kDrainable };
inline constexpr int kMostCollectives = 2;

struct Options {
  bool preemptible = false;
  unsigned methods = 0;  // none: as the policy allows
  int64_t checkpoint_interval_us = 0;
  int checkpoint_signal = 0;
  int64_t signal_grace_us = 0;
  int64_t start_by_us = 0;      // an absolute deadline
  int64_t start_within_us = 0;  // or one after the submission
  int64_t notice_us = 0;        // at most kMostNoticeUs
  int max_preemptions = -1;     // -1: not limited
  Collectives gpu_collectives = Collectives::kUnsaid;
  bool allow_io_uring = false;
  bool append_files = false;
  bool keep_connections = false;  // of the tasks of steps

  bool on_demand() const { return start_by_us != 0 || start_within_us != 0; }
};

// Takes one flag; `value` may be null if it was left out. Returns null, or what is wrong with the value: what
// was expected instead. On error `options` is as before.
const char* Set(Options& options, Flag flag, const char* value);

// What is wrong with the flags together; null if nothing is.
const char* Contradiction(const Options& options);

// "90s", "1m30s", "2h", "250ms", "1d": as everywhere in siding. False: it is none.
bool ParseDuration(const char* text, int64_t& microseconds);
// RFC 3339: "2026-05-01T12:00:00Z", also with a fraction and "+02:00". False: it is none.
bool ParseTime(const char* text, int64_t& microseconds);
// "USR1", "SIGUSR1" or "10"; 0: it is none that a program can catch.
int ParseSignal(const char* text, int length);

// "checkpoint,suspend", in the order of Method. `text` has room for all names (64 bytes).
void FormatMethods(unsigned methods, char* text);

}  // namespace siding::spank
