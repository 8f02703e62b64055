// What a task may have of memory and processes, see agent/os/fence.h. Those of a cluster manager have its
// fence. The limits are remembered; how far the fence is open is not: a new agent closes it again.
#include <algorithm>
#include <utility>

#include "agent/node/task.h"
#include "agent/os/processes.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

// Threads of Java, OpenMP and numpy on a large node are many.
constexpr int64_t kLeastProcesses = 4096;
constexpr int64_t kProcessesOfSlot = 1024;
constexpr Bytes kRoomOfDump{64 << 20};
constexpr Bytes kRoomOfThread{256 << 10};
// To close the fence of a task that holds too much.
constexpr auto kTryAgain = std::chrono::seconds(30);

}  // namespace

absl::Status Task::MakeFence(agent::ShimRequest& request) {
  if (externally_managed_) return absl::OkStatus();
  const TaskFence fence = host_.fence.For(outside_);
  const v1::Resources asked = Record().spec().per_node();
  const int64_t processes = host_.options.task_processes > 0
                                ? host_.options.task_processes
                                : std::max(kLeastProcesses, kProcessesOfSlot * asked.slots());
  const FenceLimits limits = host_.fence.Limits(Bytes{asked.memory()}, processes);
  {
    MutexLock lock(mutex_);
    record_.set_fence_memory(limits.memory.value);
    record_.set_fence_processes(limits.processes);
    Persist();
  }
  agent::ShimFence& order = *request.mutable_fence();
  order.set_memory(fence.memory_folder());
  order.set_processes(fence.processes_folder());
  order.set_most_memory(limits.memory.value);
  order.set_most_processes(limits.processes);
  SIDING_RETURN_IF_ERROR(fence.Make());
  // CRIU builds a task in there, and needs more than the task; the shim closes it when that is done.
  if (!request.has_restore()) fence.Hold(limits);
  return absl::OkStatus();
}

bool Task::MemoryIsFenced() {
  MutexLock lock(mutex_);
  return record_.fence_memory() > 0;
}

// For what CRIU runs in each thread of the task, and holds for its processes, while it dumps it.
Bytes Task::RoomForDump(pid_t init) const {
  int64_t threads = host_.fence.For(outside_).Processes();
  if (threads == 0) {  // without that controller there is no count
    for (pid_t pid : ProcessTree(init)) threads += ThreadsOf(pid);
  }
  return kRoomOfDump + Bytes{kRoomOfThread.value * threads};
}

// The kernel may block a change of a limit, so this and the next are done without mutex_: reports
// and kills do not wait for it.
void Task::RaiseFence(Bytes room) {
  MutexLock one_at_a_time(fence_mutex_);
  if (!MemoryIsFenced()) return;
  const TaskFence fence = host_.fence.For(outside_);
  if (!fence_before_) fence_before_ = fence.MemoryLimit();
  fence.Raise(room);
}

// After each operation: what has been opened is closed. Not on a task that is off its GPUs, which it has in
// RAM then, nor on one that a shim is still building, nor, from the watcher, beside an operation.
void Task::FenceAgain(bool beside) {
  MutexLock one_at_a_time(fence_mutex_);
  FenceLimits limits;
  {
    MutexLock lock(mutex_);
    const v1::TaskPhase phase = record_.report().phase();
    const bool built = phase == v1::RUNNING || phase == v1::SUSPENDED;
    if (record_.externally_managed() || !built || record_.gpu().drained() || (beside && machine_.busy()))
      return;
    limits = host_.fence.Limits(Bytes{record_.fence_memory()}, record_.fence_processes());
  }
  const bool held =
      host_.fence.For(outside_).Hold(limits, Bytes{0}, std::exchange(fence_before_, std::nullopt));
  MutexLock lock(mutex_);
  fence_is_loose_ = !held;
}

// From time to time, while it runs.
void Task::CheckFence() {
  MutexLock lock(mutex_);
  const TaskFence fence = host_.fence.For(outside_);
  const Bytes most{record_.fence_memory()};
  if (!fence.EndsAsOne() && fence.IsOutOfMemory(most)) {
    // The kernel has ended one process, and the others might wait for it for ever.
    freezer().KillAll(outside_, LivingInit(record_.init()));
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  const bool again = fence_is_loose_ && now - fence_tried_ >= kTryAgain;
  if (again) fence_tried_ = now;
  lock.Unlock();
  if (again) FenceAgain(true);
}

}  // namespace siding
