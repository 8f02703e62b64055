// What the end of a task's processes means.
#include "agent/node/task.h"
#include "agent/os/processes.h"
#include "agent/task/ending.h"
#include "agent/task/json_file.h"
#include "agent/task/shim.pb.h"
#include "common/fault.h"
#include "spdlog/spdlog.h"

namespace siding {

pid_t Task::LivingInit(agent::ProcessRef init) const {
  // Of a shim that died before it could say more.
  if (init.pid() == 0)
    init = ReadJsonFile<agent::ProcessRef>(folder_ + "/init.json").value_or(agent::ProcessRef());
  return IsAlive(init.pid(), init.start_time()) ? init.pid() : 0;
}

bool Task::EndAll() {
  const auto gone = [this] {
    if (host_.stopping) return true;
    freezer().KillAll(outside_, LivingInit(Init()));
    return LivingInit(Init()) == 0 && freezer().IsEmpty(outside_);
  };
  // Who hangs in a write to a server that is away lives, and may write yet.
  while (!PollUntil(gone, kEndPatience)) spdlog::error("task {}: some processes do not end", name_);
  return !host_.stopping;
}

void Task::Finalize() {
  FaultHere<"agent.end: a task's shim has ended, what that means is not yet judged">();
  const bool of_this_boot = Record().boot_id() == host_.boot_id;  // pids of an earlier boot mean nothing
  const auto running = ReadJsonFile<agent::ShimRunning>(folder_ + "/running.json");
  const auto exit = ReadJsonFile<agent::ShimExit>(folder_ + "/exit.json");
  {
    MutexLock lock(mutex_);
    if (running.ok() && of_this_boot) *record_.mutable_init() = running->init();
    v1::TaskReport& report = *record_.mutable_report();
    if (running.ok() && report.started_us() == 0) report.set_started_us(running->started_us());
  }
  // What a machine that shuts down does to a task is not how it ended, whatever it made of it.
  const bool seen = exit.ok() && !(exit->told_to_end() && !of_this_boot);
  // The shim died before its task. The task's end would not be seen: it ends now.
  if (!exit.ok() && of_this_boot && !EndAll()) return;
  const bool visible = ImageIsVisible();
  MutexLock lock(mutex_);
  // Before its cgroups are removed, which is when it is forgotten.
  const TaskFence fence = host_.fence.For(outside_);
  Observe(task::Ended{.exit = seen ? &*exit : nullptr,
                      .image_visible = visible,
                      .used_all_memory = fence.IsOutOfMemory(Bytes{record_.fence_memory()}),
                      .killed_for_memory = fence.KilledForMemory()})
      .IgnoreError();
}

}  // namespace siding
