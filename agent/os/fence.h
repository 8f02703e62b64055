// The fence of a task: how much memory and how many processes it may have, kept by its cgroups (v2 or v1).
//
// What the fence must not do is end a task for what is done to it. So it is opened or raised while CRIU or a
// GPU's driver works on a task, and closes again around what is there then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/units.h"

namespace siding {

// What a driver takes of the host's memory to move a GPU's, beside that.
inline constexpr Bytes kRoomForDriver{1 << 30};

struct FenceLimits {
  Bytes memory;           // RAM and swap together; 0: no limit
  int64_t processes = 0;  // and threads; 0: no limit
};

// Of one task. Its members only touch files of cgroups, which are read again each time. Thread-safe.
class TaskFence {
 public:
  // Folders of cgroups; empty: there is none of that kind. Both may be the same.
  TaskFence(std::string memory, std::string processes)
      : memory_(std::move(memory)), processes_(std::move(processes)) {}

  const std::string& memory_folder() const { return memory_; }
  const std::string& processes_folder() const { return processes_; }
  // Those that the task's processes have to join, each once.
  std::vector<std::string> Folders() const;
  // Makes the folders, with an open fence.
  absl::Status Make() const;
  // OK if they are gone already.
  absl::Status Remove() const;

  // No limits, which lets CRIU build a task of any kind.
  void Open() const;
  // So much more memory than now, for what is done to the task.
  void Raise(Bytes room) const;
  // Closes it. A task that with `slack` holds more memory than its limit, and cannot be without, keeps what
  // it has and some room, if not more than it may have now, or `most`: false then, and it is to be tried
  // again. May wait for the kernel, which makes room.
  bool Hold(const FenceLimits& limits, Bytes slack = Bytes{0}, std::optional<Bytes> most = {}) const;
  // The limit of memory as it is now; a very large number without one.
  Bytes MemoryLimit() const;
  // Processes and threads that there are; 0: it is not known.
  int64_t Processes() const;
  // The kernel has killed processes of it, because it had reached this limit of memory, which is its own.
  bool IsOutOfMemory(Bytes limit) const;
  // So many processes of it the kernel has ended for lack of memory, the machine's or its own.
  int64_t KilledForMemory() const;
  // The kernel then kills all of it by itself (v2).
  bool EndsAsOne() const;

 private:
  bool IsV2() const;
  bool HoldMemory(Bytes limit, Bytes slack, Bytes most) const;
  absl::Status SetMemory(int64_t limit) const;  // negative: none
  int64_t Used() const;                         // without what can be read again

  std::string memory_;
  std::string processes_;
};

// The fences of one node's tasks. Constant after construction.
class Fence {
 public:
  struct Wanted {
    bool memory = true;
    bool processes = true;
  };
  // Where the controllers are mounted; empty: nowhere.
  struct Mounts {
    std::string cgroup2;
    std::string memory1;
    std::string pids1;
  };

  // Finds what works here, by trying it. `node` names the folder that all tasks' cgroups are in.
  static Fence Detect(const std::string& node, Wanted wanted);
  static Fence In(const Mounts& mounts, const std::string& node, Wanted wanted);

  // What of a task that asks for so much is fenced here.
  FenceLimits Limits(Bytes memory, int64_t processes) const;
  TaskFence For(const std::string& task) const;
  // Why what is wanted is not there; empty: it is. "none" is a wish like others.
  const std::string& problem() const { return problem_; }

 private:
  Wanted wanted_;
  std::string memory_root_;  // ".../siding/<node>"; empty: there is none
  std::string pids_root_;
  std::string problem_;
};

// "memory,pids", "memory", "pids" or "none".
absl::StatusOr<Fence::Wanted> ParseFence(const std::string& text);

// A process that begins at a score below 0, as the agent's does under systemd, is back at 0 with all that it
// starts. Not allowed or not needed: nothing happens. System calls only.
void EndOomProtection(const char* path = "/proc/self/oom_score_adj");

}  // namespace siding
