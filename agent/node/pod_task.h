// A task that is a pod of Kubernetes: its kubelet starts its container, by siding-runc (agent/pods), and ends
// it. siding freezes the container, dumps it with its files, and has it restored when it is made again for
// another pod.
//
// The pod ends when the controller says so (PodGone), not when a process ends: its kubelet may start the
// container again. Once an image that makes the pod leave is committed, nothing of the container runs any
// more: it stays frozen, the report says that it `leaves`, and the controller has the pod removed.
#pragma once

#include <chrono>
#include <string>

#include "agent/node/hosted_task.h"
#include "agent/node/inspection.h"
#include "agent/pods/container_starts.h"

namespace siding {

// Thread-safe. The context outlives it.
class PodTask final : public HostedTask, private ContainerOwner {
 public:
  // One that is new, or found again: then begin with Adopt().
  PodTask(HostContext& host, TaskId id, std::string folder, agent::TaskRecord record);
  ~PodTask() override;

  const v1::Pod& pod() const { return pod_; }
  void Execute(const v1::ToAgent& command) override;
  void Adopt() override;
  v1::TaskReport Report(std::chrono::steady_clock::time_point until) override;
  void RemoveTraces() override;

 private:
  // Of ContainerOwner.
  absl::StatusOr<ContainerStart> OnStarting(const StartingContainer& starting) override;
  void OnMade(const StartingContainer& starting, const absl::StatusOr<pid_t>& made) override;

  void Do(const TaskAction& work) override ABSL_LOCKS_EXCLUDED(mutex_);
  void KillProcesses() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DoStart(const v1::ToAgent& command) ABSL_LOCKS_EXCLUDED(mutex_);
  void DoSuspend(const v1::ToAgent& command) ABSL_LOCKS_EXCLUDED(mutex_);
  void DoResume() ABSL_LOCKS_EXCLUDED(mutex_);
  void DoDump(const v1::ToAgent& command) ABSL_LOCKS_EXCLUDED(mutex_);
  void DoKill() ABSL_LOCKS_EXCLUDED(mutex_);
  void DoAdopt() ABSL_LOCKS_EXCLUDED(mutex_);
  void Finalize() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<std::string> PrepareImage(const v1::ToAgent& command, bool& damaged)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Until its container is made, or it is known that it will not be. kCancelled: there is something else to
  // do.
  absl::Status AwaitMade() ABSL_LOCKS_EXCLUDED(mutex_);
  // The runtime is asked where nobody else can say it.
  void LookForContainer() ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteMade(pid_t init) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Its container, if it runs.
  absl::StatusOr<ContainerRef> Container() ABSL_LOCKS_EXCLUDED(mutex_);
  // Back to what it was before: running or frozen.
  absl::Status ThawIfFrozen() ABSL_LOCKS_EXCLUDED(mutex_);
  // What was frozen before a dump: CRIU thaws it, and freezes it when it ends, unless it is ended by force.
  // True: nothing of it runs; also where its container has ended, which is not to be made again.
  bool FreezeAgain() ABSL_LOCKS_EXCLUDED(mutex_);
  // Until the controller says that the pod is gone, or the agent stops.
  void Leave() ABSL_LOCKS_EXCLUDED(mutex_);
  void AwaitEnd() ABSL_LOCKS_EXCLUDED(mutex_);
  // While the container is frozen: when it is thawed, none of them does anything but end.
  void KillAll(bool init_too) ABSL_LOCKS_EXCLUDED(mutex_);

  const v1::Pod pod_;
  std::optional<std::string> image_ ABSL_GUARDED_BY(mutex_);  // to be restored from; verified
  std::string image_container_ ABSL_GUARDED_BY(mutex_);       // whose image it is: its name in the pod
  std::optional<absl::Status> made_ ABSL_GUARDED_BY(mutex_);  // what became of the start
  // Who makes the container was told how, and is not there any more: it may be made, or still be.
  bool unsure_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<agent::ShimExit> exit_ ABSL_GUARDED_BY(mutex_);  // as PodGone says
  Inspections inspections_;                                      // for reports
};

}  // namespace siding
