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
#include <condition_variable>
#include <functional>
#include <mutex>
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

  // All of these with mutex_ held.
  // Carries out what the machine asks for. New work is begun, or left to the worker in next_ if this is on
  // it. The status is that of the last durable record.
  absl::Status Perform(const TaskActions& actions);
  absl::Status Observe(const TaskObservation& seen) { return Perform(machine_.Observe(seen)); }
  absl::Status TryPersist();
  void Persist();  // an error is in the log: the earlier record is as good as the processes can tell
  absl::Status PersistDurably();
  void Send();

  // Operations: on the worker thread, without mutex_.
  void Do(const TaskAction& work);
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

  void Work(TaskAction work);
  // task_gpu.cc. Without mutex_, and nothing to do for a job without GPUs.
  bool UsesGpus() const { return record_.spec().per_node().gpus() > 0; }
  GpuFacts Gpus() const;  // with mutex_ held
  std::string WhyNoScript(pid_t init);
  Account User();
  InspectionRequest WhatToInspect() const;  // with mutex_ held
  // Calls `look` on another thread; kDeadlineExceeded: it does not come back, or the last one has not. For
  // the worker. It owns all that it uses.
  absl::Status InTime(std::function<absl::Status()> look);
  void NoteAllocatedGpus(const GpuAllocation& said, v1::JobSpec& spec);  // with mutex_ held
  absl::Status TakeGpus();
  absl::Status TakeAllocatedGpus();
  std::vector<std::string> GpusInReach() const;
  // `patience`: for work on its GPUs to come to its end; 0: the longest.
  absl::Status LeaveGpus(Duration patience);
  absl::Status CheckDrainable(pid_t init);
  absl::Status CheckLocked(pid_t init);
  absl::Status NoteInheritedDescriptors();
  bool HasComeToGpus();
  absl::Status NoteRefusal(const absl::Status& why);
  Duration ExpectedLock(size_t processes);
  bool IsCalledOff();
  absl::Status ReturnToGpus();
  void GiveGpusBack();  // with mutex_ held
  bool FreezeAgain();

  void StartAndWait(agent::ShimRequest request);
  void FailStart(const absl::Status& why);
  void AwaitStart();
  void OnStarted(const agent::ShimRunning& running);
  void Watch(UniqueFd shim);
  // The init, if it lives: also one that the agent has not been told of.
  pid_t LivingInit() const;
  // Ends all processes; returns when they are gone, or false when the agent is stopping.
  bool EndAll();
  absl::Status PrepareImage(const v1::ToAgent& command, agent::ShimRequest& request, bool& damaged);
  void StartFromBeginning(const v1::ToAgent& command, const absl::Status& why);
  void RememberIncarnation(const Manifest& manifest);
  absl::Status ThawIfFrozen();
  // Tells the task that it is about to be stopped, and waits. Not OK: it is not to be stopped any more.
  absl::Status GiveNotice(Duration notice);
  // Waits for the task's end, or for `more`, which is called without mutex_; true if the task has ended.
  bool WaitEnded(Duration timeout, const std::function<bool()>& more = {});
  // With mutex_ held, or on the worker after the start.
  const Freezer& freezer() const { return record_.externally_managed() ? host_.signals : host_.freezer; }
  absl::StatusOr<UniqueFd> AwaitShim();
  // For the files of an encrypted image while it is being restored.
  std::string PlainFolder() const { return host_.PlainFolder() + "/restore/" + name_; }
  // task_fence.cc.
  absl::Status MakeFence(agent::ShimRequest& request);
  Bytes RoomForDump(pid_t init) const;
  void RaiseFence(Bytes room);
  void FenceAgain(bool beside = false);
  void CheckFence();
  bool MemoryIsFenced();
  bool HasUsedAllMemory();  // with mutex_ held
  void RemovePlainFolder();
  void RemoveTmpdir(const std::function<void()>& then = [] {});
  bool Interrupted() const { return interrupt_ || host_.stopping; }

  HostContext& host_;
  const TaskId id_;
  const std::string name_;  // "42.1.0"
  const std::string folder_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Account> user_;     // guarded by mutex_: once it was looked up
  TaskMachine machine_;             // guarded by mutex_
  agent::TaskRecord& record_;       // guarded by mutex_: the machine's
  std::optional<TaskAction> next_;  // guarded by mutex_: what the worker begins next
  bool on_worker_ = false;          // guarded by mutex_: the worker asks the machine for its next work
  std::optional<std::chrono::steady_clock::time_point> refused_at_;  // guarded by mutex_: by the GPU driver
  std::optional<Duration> gpu_lock_;         // guarded by mutex_: how long the last drains waited for locks
  std::function<void(absl::Status)> ready_;  // the worker's: of ExpectShim()
  bool inspection_hangs_ = false;            // guarded by mutex_: it is known that it cannot be looked at
  bool fence_is_loose_ = false;              // guarded by mutex_: it holds more memory than it may have
  std::mutex fence_mutex_;                   // taken before mutex_
  std::optional<Bytes> fence_before_;        // guarded by fence_mutex_: the limit of memory that was raised
  std::chrono::steady_clock::time_point fence_tried_;  // the watcher's
  // Copies of the machine's, for the worker, which looks at them without mutex_.
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
