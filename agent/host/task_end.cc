// What the end of a task's processes means.
#include "agent/host/task.h"
#include "agent/host/task_ending.h"
#include "agent/launch/json_file.h"
#include "agent/launch/processes.h"
#include "agent/launch/shim.pb.h"
#include "common/fault.h"
#include "spdlog/spdlog.h"

namespace siding {

void Task::Conclude() {
  v1::TaskReport& report = *record_.mutable_report();
  if (IsOver(report.phase())) return;
  if (report.phase() == v1::TASK_PHASE_UNSPECIFIED) return;
  FaultHere<"agent.end: a task's shim has ended, what that means is not yet judged">();
  if (auto running = ReadJsonFile<agent::ShimRunning>(folder_ + "/running.json"); running.ok()) {
    *record_.mutable_init() = running->init();
    if (report.started_us() == 0) report.set_started_us(running->started_us());
  }
  const auto exit = ReadJsonFile<agent::ShimExit>(folder_ + "/exit.json");
  const agent::DumpRecord& dump = record_.dump();
  const auto image_visible = [&] {
    const auto store = host_.Store(dump.tier());
    return store.ok() && (*store)->Read({CheckpointId(dump.checkpoint()), id_.rank}).ok();
  };
  if (!exit.ok()) {
    // The shim died before its task. Nobody would learn of the task's end: it ends now.
    const pid_t init = IsAlive(record_.init().pid(), record_.init().start_time()) ? record_.init().pid() : 0;
    freezer().KillAll(name_, init);
  }
  SetPhase(ReportEnding(record_, exit.ok() ? &*exit : nullptr, image_visible));
}

}  // namespace siding
