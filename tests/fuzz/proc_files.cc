// What the kernel says of processes, with names in it that users choose; and CRIU's log.
#include "agent/checkpoint/connections.h"
#include "agent/checkpoint/kernel_state.h"
#include "agent/checkpoint/precheck.h"
#include "agent/checkpoint/timers.h"
#include "agent/criu/criu.h"
#include "agent/os/cgroups.h"
#include "agent/os/freezer.h"
#include "agent/os/processes.h"
#include "agent/shim/slurm_gpus.h"
#include "agent/shim/slurm_task.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace siding;
  const std::string text = fuzz::TextOf(data, size);
  ParseProcessStat(text);
  StayInside(ParseTcp(text), {1, 2});
  GroupsOf(text);
  ParseCgroups(text);
  CommandChecksum(SplitAtZeros(text, 1));
  FindCgroupMounts(text);
  IsFrozenText(FreezerKind::kCgroup2, text);
  WhyNotDumpableLink(text, true);
  WhyNotDumpableProcFile(text);
  WhyNotDumpableMaps(text);
  for (const CriuKind criu : {CriuKind::kAny, CriuKind::kOurs}) {
    WhyNotDumpableEventfd(text, criu);
    WhyNotDumpablePersonality(text, criu);
  }
  WhyNotDumpableShell(1, text, text);
  WhyNotDumpableOwner(text, {1, 1});
  FindForegroundEnded({text, text});
  WhyNotDumpablePipe(text);
  WhyNotDumpableTimer(text);
  PosixTimerThatRunsOn(text);
  TimerfdThatRunsOn(text);
  WhyNotDumpableCgroupFile("/sys/fs/cgroup/" + text, text);
  SocketsWithUnread(text, true);
  for (const MulticastGroup& group : ParseIgmp(text)) NameOf(group);
  for (const MulticastGroup& group : ParseIgmp6(text)) NameOf(group);
  GpuLines(SplitAtZeros(text, 0), "0,1");
  WhyCriuFailed(text);
  return 0;
}
