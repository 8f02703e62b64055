// What a task may have of memory and processes, see agent/launch/fence.h. Those of a cluster manager have its
// fence. The limits are remembered; how far the fence is open is not: a new agent closes it again.
#include <algorithm>
#include <utility>

#include "agent/host/task.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

// Threads of Java, OpenMP and numpy on a large node are many.
constexpr int64_t kLeastProcesses = 4096;
constexpr int64_t kProcessesOfSlot = 1024;
constexpr Bytes kRoomOfDump{64 << 20};
constexpr Bytes kRoomOfThread{256 << 10};

}  // namespace

absl::Status Task::MakeFence(agent::ShimRequest& request) {
  if (record_.hosted()) return absl::OkStatus();
  const TaskFence fence = host_.fence.For(name_);
  const v1::Resources& asked = record_.spec().per_node();
  const int64_t processes = host_.options.task_processes > 0
                                ? host_.options.task_processes
                                : std::max(kLeastProcesses, kProcessesOfSlot * asked.slots());
  const FenceLimits limits = host_.fence.Limits(Bytes{asked.memory()}, processes);
  {
    std::lock_guard lock(mutex_);
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
  std::lock_guard lock(mutex_);
  return record_.fence_memory() > 0;
}

// For what CRIU runs in each thread of the task, and holds for its processes, while it dumps it.
Bytes Task::RoomForDump() const {
  return kRoomOfDump + Bytes{kRoomOfThread.value * host_.fence.For(name_).Processes()};
}

void Task::RaiseFence(Bytes room) {
  std::lock_guard lock(mutex_);
  if (record_.fence_memory() == 0) return;
  const TaskFence fence = host_.fence.For(name_);
  if (!fence_before_) fence_before_ = fence.MemoryLimit();
  fence.Raise(room);
}

// After each operation: what has been opened is closed. Not on a task that is off its GPUs, which it has in
// RAM then, nor on one that a shim is still building.
void Task::FenceAgain() {
  std::lock_guard lock(mutex_);
  const v1::TaskPhase phase = record_.report().phase();
  if (record_.hosted() || (phase != v1::RUNNING && phase != v1::SUSPENDED) || record_.gpu().drained()) return;
  const TaskFence fence = host_.fence.For(name_);
  const auto before = std::exchange(fence_before_, std::nullopt);
  // A CRIU that ended on the way, or a driver, may have left something in the task.
  if (before && !record_.dump().cut_short() && !UsesGpus()) fence.Lower(*before);
  fence_is_loose_ = !fence.Hold(host_.fence.Limits(Bytes{record_.fence_memory()}, record_.fence_processes()));
}

// From time to time, while it runs.
void Task::LookAtFence() {
  std::unique_lock lock(mutex_);
  const TaskFence fence = host_.fence.For(name_);
  const Bytes most{record_.fence_memory()};
  if (fence.IsOutOfMemory(most) && !fence.EndsAsOne()) {
    // The kernel has ended one process, and the others might wait for it for ever.
    freezer().KillAll(name_, LivingInit());
    return;
  }
  const bool again = fence_is_loose_ && !busy_;
  lock.unlock();
  if (again) FenceAgain();
}

void Task::NoteOutOfMemory() {
  v1::TaskReport& report = *record_.mutable_report();
  const bool ended_well = report.exit_code() == 0 && report.exit_signal() == 0;
  if (ended_well || !report.own_end() || record_.fence_memory() == 0) return;
  if (!host_.fence.For(name_).IsOutOfMemory(Bytes{record_.fence_memory()})) return;
  report.set_out_of_memory(record_.fence_memory());
  spdlog::info("task {}: used all of its {}", name_, FormatBytes(Bytes{record_.fence_memory()}));
}

}  // namespace siding
