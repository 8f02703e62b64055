// One task on this node, from its launch or restore until it is forgotten.
//
// What it does next is decided by its machine (agent/task/machine.h); this carries the machine's actions out.
// Commands come in on any thread. One piece of work is done at a time, on the task's worker thread; a second
// thread waits for the shim's end. What is remembered over the agent's death is the record, written to
// task.json before each step that cannot be seen from the processes themselves.
//
// The work is split by verb: task_start.cc (launch, restore), task_dump.cc, task_suspend.cc,
// task_notice.cc, task_save.cc, task_kill.cc, task_gpu.cc (off the GPUs and back), task_adopt.cc (found again
// after the agent's death), task_end.cc, task_fence.cc (its memory and its processes).
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "agent/node/context.h"
#include "agent/node/detached_work.h"
#include "agent/node/inspection.h"
#include "agent/os/account.h"
#include "agent/task/machine.h"
#include "agent/task/task_record.pb.h"
#include "common/files.h"
#include "common/ids.h"
#include "common/mutex.h"
#include "siding/v1/agent.pb.h"

namespace siding {

inline constexpr Duration kFreezePatience = std::chrono::seconds(10);
inline constexpr Duration kEndPatience = std::chrono::seconds(30);

// Thread-safe. The context outlives it.
class Task {
 public:
  // A new one, for Launch or Restore.
  Task(HostContext& host, TaskId id, std::string folder);
  // One found again. Begin with Adopt().
  Task(HostContext& host, TaskId id, std::string folder, agent::TaskRecord record);
  // Undoes a dump that is not committed; the processes stay.
  ~Task();
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  void Execute(const v1::ToAgent& command);
  // See TaskHost. To be called once, on a new one.
  void ExpectShim(v1::ToAgent start, const GpuAllocation& gpus, std::function<void(absl::Status)> ready);
  // Of an externally managed batch script: one of its steps has come.
  void NoteStep();
  void Adopt();
  // The report with fresh figures from /proc, if the look at them is over by then; otherwise with the last
  // ones. If there are none for a while, the report says so.
  v1::TaskReport Report(std::chrono::steady_clock::time_point until);
  // True if it is over and nothing is under way: its folder may be removed.
  bool CanForget();
  // Removes what is left of it on this machine.
  void RemoveTraces();

 private:
  using Decision = TaskMachine::Decision;
  class Dumper;

  // Carries out what the machine asks for. New work is begun, or left to the worker in next_ if this is on
  // it. The status is that of the last durable record.
  absl::Status Perform(const TaskActions& actions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Observe(const TaskObservation& seen) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return Perform(machine_.Observe(seen));
  }
  absl::Status TryPersist() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // An error is in the log: the earlier record is as good as the processes can tell.
  void Persist() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status PersistDurably() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Send() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // What the worker looks at without mutex_.
  void CopyFacts() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Operations: on the worker thread, without mutex_.
  void Do(const TaskAction& work) ABSL_LOCKS_EXCLUDED(mutex_);
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

  void Work(TaskAction work) ABSL_LOCKS_EXCLUDED(mutex_);
  // task_gpu.cc. Nothing to do for a job without GPUs.
  bool UsesGpus() const { return uses_gpus_; }
  GpuFacts Gpus() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string WhyNoScript(pid_t init) ABSL_LOCKS_EXCLUDED(mutex_);
  Account User() ABSL_LOCKS_EXCLUDED(mutex_);
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

  void StartAndWait(agent::ShimRequest request);
  void FailStart(const absl::Status& why);
  void AwaitStart();
  void OnStarted(const agent::ShimRunning& running);
  void Watch(UniqueFd shim);
  // Copies, for the worker and the watcher.
  agent::TaskRecord Record() ABSL_LOCKS_EXCLUDED(mutex_);
  agent::ProcessRef Init() ABSL_LOCKS_EXCLUDED(mutex_);
  // The init, if it lives: also one that the agent has not been told of. `init`: what is known of it.
  pid_t LivingInit(agent::ProcessRef init) const;
  // Ends all processes; returns when they are gone, or false when the agent is stopping.
  bool EndAll() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status PrepareImage(const v1::ToAgent& command, agent::ShimRequest& request, bool& damaged);
  void StartFromBeginning(const v1::ToAgent& command, const absl::Status& why);
  void RememberIncarnation(const Manifest& manifest);
  absl::Status ThawIfFrozen() ABSL_LOCKS_EXCLUDED(mutex_);
  // Tells the task that it is about to be stopped, and waits. Not OK: it is not to be stopped any more.
  absl::Status GiveNotice(Duration notice);
  // Waits for the task's end, or for `more`, which is called without mutex_; true if the task has ended.
  bool WaitEnded(Duration timeout, const std::function<bool()>& more = {});
  const Freezer& freezer() const { return externally_managed_ ? host_.signals : host_.freezer; }
  absl::StatusOr<UniqueFd> AwaitShim();
  // For the files of an encrypted image while it is being restored.
  std::string PlainFolder() const { return host_.PlainFolder() + "/restore/" + name_; }
  // task_fence.cc.
  absl::Status MakeFence(agent::ShimRequest& request);
  Bytes RoomForDump(pid_t init) const;
  void RaiseFence(Bytes room) ABSL_LOCKS_EXCLUDED(mutex_);
  void FenceAgain(bool beside = false) ABSL_LOCKS_EXCLUDED(mutex_);
  void CheckFence() ABSL_LOCKS_EXCLUDED(mutex_);
  bool MemoryIsFenced() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasUsedAllMemory() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemovePlainFolder();
  void RemoveTmpdir(const std::function<void()>& then = [] {});
  bool Interrupted() const { return interrupt_ || host_.stopping; }

  HostContext& host_;
  const TaskId id_;
  const std::string name_;  // "42.1.0"
  const std::string folder_;

  Mutex mutex_;
  CondVar changed_;
  std::optional<Account> user_ ABSL_GUARDED_BY(mutex_);  // once it was looked up
  TaskMachine machine_ ABSL_GUARDED_BY(mutex_);
  agent::TaskRecord& record_ ABSL_GUARDED_BY(mutex_);       // the machine's
  std::optional<TaskAction> next_ ABSL_GUARDED_BY(mutex_);  // what the worker begins next
  bool on_worker_ ABSL_GUARDED_BY(mutex_) = false;          // the worker asks the machine for its next work
  // By the GPU driver.
  std::optional<std::chrono::steady_clock::time_point> refused_at_ ABSL_GUARDED_BY(mutex_);
  std::optional<Duration> gpu_lock_ ABSL_GUARDED_BY(mutex_);  // how long the last drains waited for locks
  std::function<void(absl::Status)> ready_;                   // the worker's: of ExpectShim()
  bool inspection_hangs_ ABSL_GUARDED_BY(mutex_) = false;     // it is known that it cannot be looked at
  bool fence_is_loose_ ABSL_GUARDED_BY(mutex_) = false;       // it holds more memory than it may have
  Mutex fence_mutex_;                                         // taken before mutex_
  std::optional<Bytes> fence_before_ ABSL_GUARDED_BY(fence_mutex_);  // the limit of memory that was raised
  std::chrono::steady_clock::time_point fence_tried_;                // the watcher's
  // Copies of the machine's, for the worker, which looks at them without mutex_.
  std::atomic<bool> externally_managed_{false};
  std::atomic<bool> uses_gpus_{false};
  std::atomic<bool> interrupt_{false};
  std::atomic<bool> kill_now_{false};
  std::atomic<bool> abandon_{false};  // CRIU is to be ended by force
  const std::shared_ptr<InspectionProgress> inspection_ = std::make_shared<InspectionProgress>();
  DetachedWork inspections_;  // for reports
  DetachedWork checks_;       // for orders
  UniqueFd wake_;             // an eventfd: ends the watcher
  std::thread watcher_;
  std::thread worker_;
};

}  // namespace siding
