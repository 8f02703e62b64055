#include "agent/pods/pod_dump.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/checkpoint/connections.h"
#include "agent/checkpoint/dump_steps.h"
#include "agent/checkpoint/precheck.h"
#include "agent/checkpoint/queues.h"
#include "agent/checkpoint/repair.h"
#include "agent/checkpoint/tracers.h"
#include "agent/os/held.h"
#include "agent/os/processes.h"
#include "agent/pods/container_files.h"
#include "agent/pods/criu_settings.h"
#include "common/fault.h"
#include "common/status.h"

namespace siding {
namespace {

// It has been ended, or a runc that died by itself has left it behind: then it undoes what it has begun.
constexpr Duration kCriuPatience = kRuncUndoPatience;
constexpr int kPauses = 4;
constexpr auto kBetweenPauses = std::chrono::milliseconds(100);

std::string RootOf(pid_t init) { return absl::StrCat("/proc/", init, "/root"); }

std::string WhyNotOfContainer(const ContainerConfig& config) {
  if (config.has_terminal) return "containers with a terminal are not restored";
  return std::string(CheckContainerFiles(config).message());
}

std::string WhyNotOfProcesses(const ContainerConfig& config, pid_t init) {
  std::string why;
  // CRIU waits for one that is frozen as well, and the pod would stand still as long. Where all of them are
  // stopped, that is how the runtime holds them: the first process cannot be stopped from inside.
  const std::vector<pid_t> tree = ProcessTree(init);
  const bool held = std::all_of(tree.begin(), tree.end(), IsStoppedBySignal);
  for (const pid_t pid : tree) {
    if (why.empty() && !held && IsStoppedBySignal(pid))
      why = absl::StrCat(NameOf(pid), " has been stopped (SIGSTOP)");
  }
  if (const std::string other = FindConnectionOutside(init); why.empty() && !other.empty())
    why = absl::StrCat("one of its processes has a TCP connection that leads out of the job, to ", other);
  if (const std::string bound = FindBoundAddress(init); why.empty() && !bound.empty())
    why = absl::StrCat("a socket has the pod's own address (", bound, "), and the next pod has another one");
  ForEachHeld(init, [&](const Held& held) {
    if (!why.empty()) return;
    const std::string file = TargetOf(held.link);
    const std::string reason = WhyNotInNextPod(config, file);
    if (!reason.empty()) why = absl::StrCat(NameOf(held.pid), " has ", file, " open, ", reason);
  });
  return why;
}

// What would make a restore fail, and each one after it, is said before anything is done. Of a frozen
// container.
absl::Status CheckProcesses(const ContainerConfig& config, pid_t init, const DumpingCriu& criu) {
  std::string why = WhyNotDumpable(init, criu);
  if (why.empty()) why = WhyNotOfProcesses(config, init);
  return why.empty() ? absl::OkStatus() : absl::FailedPreconditionError(why);
}

// Nothing that was started for a dump that has failed is at work any more.
absl::Status WithoutCriu(const absl::Status& failed, pid_t init, const std::string& work_folder) {
  const absl::Status gone = AwaitCriuGone(init, work_folder, kCriuPatience);
  if (gone.ok()) return failed;
  return Reworded(failed, absl::StrCat(std::string(gone.message()), ": ", std::string(failed.message())));
}

}  // namespace

ContainerHindrances FindContainerHindrances(const std::string& bundle, pid_t init) {
  absl::StatusOr<ContainerConfig> config = ReadContainerConfig(bundle);
  // It has ended meanwhile.
  if (!config.ok() || !SeeAsProcessesDo(*config, RootOf(init)).ok()) return {};
  return {WhyNotOfContainer(*config), WhyNotOfProcesses(*config, init)};
}

absl::Status PauseWithNothingQueued(ContainerRuntime& runtime, const ContainerRef& container,
                                    bool was_paused) {
  SIDING_ASSIGN_OR_RETURN(const pid_t init, runtime.InitOf(container));
  for (int tries = 1;; ++tries) {
    SIDING_RETURN_IF_ERROR(runtime.Pause(container));
    // Seen from outside, whether its processes run or not.
    const std::string queued = FindQueued(init);
    if (queued.empty()) return absl::OkStatus();
    if (was_paused) return absl::FailedPreconditionError(queued + "; resume it for a moment");
    if (tries == kPauses) return absl::FailedPreconditionError(queued);
    SIDING_RETURN_IF_ERROR(runtime.Resume(container));
    std::this_thread::sleep_for(kBetweenPauses);
  }
}

absl::Status RunPodDump(ContainerRuntime& runtime, ImageStore& store, const PodDumpPlan& plan,
                        DumpObserver& observer, const std::atomic<bool>& abandon) {
  SIDING_ASSIGN_OR_RETURN(ContainerConfig config, ReadContainerConfig(plan.container.bundle));
  if (const std::string why = WhyNotOfContainer(config); !why.empty())
    return absl::FailedPreconditionError(why);
  SIDING_ASSIGN_OR_RETURN(const pid_t init, runtime.InitOf(plan.container));
  SIDING_RETURN_IF_ERROR(SeeAsProcessesDo(config, RootOf(init)));
  SIDING_RETURN_IF_ERROR(CheckProcesses(config, init, plan.criu));
  SIDING_RETURN_IF_ERROR(WriteCriuSettings(plan.container.bundle, ConnectionsStayInside(init)));
  SIDING_ASSIGN_OR_RETURN(const std::unique_ptr<ImageDraft> draft, store.Begin(plan.key));
  SIDING_RETURN_IF_ERROR(FaultAt<"agent.pod.draft: the folder of a pod's image is made">());
  const ProgressTeller teller(*draft, observer);
  if (absl::Status status = runtime.Checkpoint(plan.container, draft->path(), plan.work_folder, abandon);
      !status.ok()) {
    status = WithoutCriu(status, init, plan.work_folder);
    EndRepair(init);  // where CRIU was ended in the middle
    return absl::IsResourceExhausted(status) ? TierProblem(status) : status;
  }
  SIDING_RETURN_IF_ERROR(FaultAt<"agent.pod.dumped: a pod's processes are in its image">());
  SIDING_RETURN_IF_ERROR(SaveContainerFiles(config, draft->path(), &abandon));
  // The kubelet is not frozen: what it has written anew meanwhile is in the image by a name that is gone.
  SIDING_RETURN_IF_ERROR(CheckProcesses(config, init, plan.criu));
  auto metadata = plan.metadata;
  if (std::string need = FindNeedOfOurs(init); !need.empty()) metadata[kMetadataNeedsOurs] = std::move(need);
  SIDING_ASSIGN_OR_RETURN(const Manifest manifest, draft->Seal(std::move(metadata)));
  SIDING_RETURN_IF_ERROR(FaultAt<"agent.pod.sealed: a pod's image is whole, nobody has been told">());
  const StillHeld held = [&]() -> absl::Status {
    SIDING_ASSIGN_OR_RETURN(const bool paused, runtime.IsPaused(plan.container));
    return paused ? absl::OkStatus() : absl::UnavailableError("somebody has resumed the container");
  };
  // Asked of the runtime right before the commit, and not twenty times a second.
  SIDING_RETURN_IF_ERROR(observer.OnPrepared(manifest, [] { return absl::OkStatus(); }));
  SIDING_RETURN_IF_ERROR(FaultAt<"agent.pod.decided: a pod's image is to count">());
  const auto remembered = [&]() -> absl::Status {
    SIDING_RETURN_IF_ERROR(
        FaultAt<"agent.pod.remembered: that it commits is remembered, a pod's image does not count yet">());
    return held();
  };
  SIDING_RETURN_IF_ERROR(
      CommitPatiently(*draft, store, plan.key, observer, remembered, held, plan.commit_patience));
  FaultHere<"agent.pod.committed: a pod's image counts">();
  observer.OnCommitted();
  return absl::OkStatus();
}

}  // namespace siding
