// A task whose processes are started by a shim, from its launch or restore until it is forgotten. Beside the
// worker (hosted_task.h) a second thread waits for the shim's end.
//
// The work is split by verb: task_start.cc (launch, restore), task_dump.cc, task_suspend.cc,
// task_notice.cc, task_network.cc, task_save.cc, task_kill.cc, task_gpu.cc (off the GPUs and back),
// task_adopt.cc (found again after the agent's death), task_end.cc, task_fence.cc (its memory and its
// processes).
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "agent/memory/memory_tracking.h"
#include "agent/node/detached_work.h"
#include "agent/node/hosted_task.h"
#include "agent/node/inspection.h"
#include "agent/os/account.h"
#include "agent/os/names.h"
#include "common/files.h"
#include "common/laps.h"

namespace siding {

// Thread-safe. The context outlives it.
class Task final : public HostedTask, private PacketHold {
 public:
  // One that is new, for Launch or Restore, or found again: then begin with Adopt().
  Task(HostContext& host, TaskId id, std::string folder, agent::TaskRecord record);
  // Undoes a dump that is not committed; the processes stay.
  ~Task() override;

  // See TaskHost. To be called once, on a new one.
  void ExpectShim(v1::ToAgent start, const GpuAllocation& gpus, std::function<void(absl::Status)> ready);
  // Of an externally managed batch script: one of its steps has come.
  void NoteStep();
  void Adopt() override;
  void Execute(const v1::ToAgent& command) override;
  // Figures are from /proc. If there are none for a while, the report says so.
  v1::TaskReport Report(std::chrono::steady_clock::time_point until) override;
  void RemoveTraces() override;

 private:
  void CopyFacts() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KillProcesses() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseGpus() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { GiveGpusBack(); }
  void Done() override { FenceAgain(); }

  // Operations: on the worker thread, without mutex_.
  void Do(const TaskAction& work) override ABSL_LOCKS_EXCLUDED(mutex_);
  void DoLaunch(const v1::ToAgent& command);
  void DoRestore(const v1::ToAgent& command);
  void DoSuspend(const v1::ToAgent& command);
  void DoResume();
  void DoDump(v1::ToAgent command);
  void DoSave(const v1::ToAgent& command);
  absl::Status TellToSave(const v1::Save& save, Duration patience);
  void DoKill(Duration grace);
  void DoAdopt();
  void Finalize();

  // task_gpu.cc. Nothing to do for a job without GPUs.
  bool UsesGpus() const { return uses_gpus_; }
  GpuFacts Gpus() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string WhyNoScript(pid_t init) ABSL_LOCKS_EXCLUDED(mutex_);
  Account User() ABSL_LOCKS_EXCLUDED(mutex_);
  ProgramNames NamesIn(const agent::TaskRecord& record) const {
    return {record.begun_in(), id_.job.value(), id_.rank};
  }
  InspectionRequest WhatToInspect() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls `look` on another thread; kDeadlineExceeded: it does not come back, or the last one has not. For
  // the worker. It owns all that it uses.
  absl::Status InTime(std::function<absl::Status()> look) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteAllocatedGpus(const GpuAllocation& said, v1::JobSpec& spec) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TakeGpus() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status TakeAllocatedGpus();
  std::vector<std::string> GpusInReach() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `patience`: for work on its GPUs to come to its end; 0: the longest.
  absl::Status LeaveGpus(Duration patience) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckDrainable(pid_t init);
  absl::Status CheckLocked(pid_t init);
  absl::Status NoteInheritedDescriptors();
  static bool HasComeToGpus(const agent::ProcessRef& init, const agent::GpuRecord& gpu);
  absl::Status NoteRefusal(const absl::Status& why);
  Duration ExpectedLock(size_t processes) ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsCalledOff() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ReturnToGpus() ABSL_LOCKS_EXCLUDED(mutex_);
  void GiveGpusBack() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool FreezeAgain() ABSL_LOCKS_EXCLUDED(mutex_);

  // task_network.cc. Nothing to do for a job that uses the node's network.
  absl::Status PlanNetwork(agent::ShimNetwork& network);
  bool AwaitsOthers() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<UniqueFd> OwnNetwork() ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteRestored() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status NoteNetwork(pid_t init) ABSL_LOCKS_EXCLUDED(mutex_);
  void JoinNetwork(const v1::JoinNetwork& order) ABSL_LOCKS_EXCLUDED(mutex_, network_mutex_);
  void RunJoined() ABSL_LOCKS_EXCLUDED(mutex_);
  bool SpeaksOut() ABSL_LOCKS_EXCLUDED(mutex_);
  static absl::Status LastWordsOnTheirWay();
  bool AwaitLastWords() ABSL_LOCKS_EXCLUDED(mutex_);
  void EndLastWords() ABSL_LOCKS_EXCLUDED(mutex_);
  void Drain() override ABSL_LOCKS_EXCLUDED(mutex_);
  void Drain(int network);
  absl::Status Hold() override ABSL_LOCKS_EXCLUDED(mutex_, network_mutex_);
  void LetGo() override ABSL_LOCKS_EXCLUDED(mutex_, network_mutex_);

  void StartAndWait(agent::ShimRequest request);
  void FailStart(const absl::Status& why, bool no_gpu = false);
  void AwaitStart();
  void OnStarted(const agent::ShimRunning& running);
  void Watch(UniqueFd shim);
  // The init, if it lives: also one that the agent has not been told of. `init`: what is known of it.
  pid_t LivingInit(agent::ProcessRef init) const;
  // Ends all processes; returns when they are gone, or false when the agent is stopping.
  bool EndAll() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status PrepareImage(const v1::ToAgent& command, agent::ShimRequest& request, bool& damaged);
  absl::StatusOr<std::string> Unite(const Manifest& manifest, const std::string& folder,
                                    const ImageStore& store) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::string> UniteIn(const ImageStore& where, const Manifest& manifest,
                                      const std::string& folder) ABSL_LOCKS_EXCLUDED(mutex_);
  void StartFromBeginning(const v1::ToAgent& command, const absl::Status& why);
  absl::Status RememberImage(const Manifest& manifest);
  void SetBegunIn(const std::string& cluster) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ThawIfFrozen() ABSL_LOCKS_EXCLUDED(mutex_);
  // Tells the task that it is about to be stopped, and waits. Not OK: it is not to be stopped any more.
  absl::Status GiveNotice(Duration notice);
  // Waits for the task's end, or for `more`, which is called without mutex_; true if the task has ended.
  bool WaitEnded(Duration timeout, const std::function<bool()>& more = {});
  // Its processes are about to be gone: waits until its shim has said how they ended, however long it cannot
  // write that. False: they live on after this time. True also if something else is to be done first.
  bool AwaitWord(const agent::ProcessRef& init, Duration patience);
  const Freezer& freezer() const { return externally_managed_ ? host_.signals : host_.freezer; }
  absl::StatusOr<UniqueFd> AwaitShim();
  // task_fence.cc.
  absl::Status MakeFence(agent::ShimRequest& request);
  Bytes RoomForDump(pid_t init) const;
  void RaiseFence(Bytes room) ABSL_LOCKS_EXCLUDED(mutex_);
  // task_rehearse.cc.
  std::string RehearsalFolder() const { return folder_ + "/rehearsal"; }
  bool IsToBeRehearsed(const agent::TaskRecord& record, const v1::Dump& dump) const;
  absl::Status Rehearse(const agent::TaskRecord& record, const std::string& image, Duration most,
                        const std::function<bool()>& stop);
  void NoteRehearsal(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteNoRehearsal(const std::string& why) ABSL_LOCKS_EXCLUDED(mutex_);
  void FenceAgain(bool beside = false) ABSL_LOCKS_EXCLUDED(mutex_);
  void CheckFence() ABSL_LOCKS_EXCLUDED(mutex_);
  bool MemoryIsFenced() ABSL_LOCKS_EXCLUDED(mutex_);
  void RemoveRestoreFolders() ABSL_LOCKS_EXCLUDED(mutex_);
  std::string SetTmpdirAside();

  std::optional<Account> user_ ABSL_GUARDED_BY(mutex_);  // once it was looked up
  // By the GPU driver.
  std::optional<std::chrono::steady_clock::time_point> refused_at_ ABSL_GUARDED_BY(mutex_);
  std::optional<Duration> gpu_lock_ ABSL_GUARDED_BY(mutex_);  // how long the last drains waited for locks
  std::function<void(absl::Status)> ready_;                   // the worker's: of ExpectShim()
  bool inspection_hangs_ ABSL_GUARDED_BY(mutex_) = false;     // it is known that it cannot be looked at
  bool fence_is_loose_ ABSL_GUARDED_BY(mutex_) = false;       // it holds more memory than it may have
  Laps restoring_ ABSL_GUARDED_BY(mutex_);                    // since its restore was begun
  std::set<int> exited_;  // the worker's: ranks of the job, as the dump's order says
  Mutex network_mutex_;   // taken before mutex_
  bool packets_are_held_ ABSL_GUARDED_BY(network_mutex_) = false;    // for a dump
  Mutex fence_mutex_;                                                // taken before mutex_
  std::optional<Bytes> fence_before_ ABSL_GUARDED_BY(fence_mutex_);  // the limit of memory that was raised
  std::chrono::steady_clock::time_point fence_tried_;                // the watcher's
  // Copies of the machine's, for the worker, which looks at them without mutex_.
  std::atomic<bool> externally_managed_{false};
  std::atomic<bool> uses_gpus_{false};
  Inspections inspections_;  // for reports
  DetachedWork checks_;      // for orders
  MemoryTracking tracking_;  // the worker's
  UniqueFd wake_;            // an eventfd: ends the watcher
  std::thread watcher_;
};

}  // namespace siding
