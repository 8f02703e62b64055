// What all tasks of a node have in common, whoever starts their processes: a machine (agent/task/machine.h)
// that decides what is done next, a record that outlives the agent, and a worker that does one piece of work
// at a time. What the work is, derived classes say.
//
// Commands come in on any thread. The record is written to task.json before each step that cannot be seen
// from the processes themselves.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "agent/checkpoint/dump.h"
#include "agent/node/context.h"
#include "agent/task/machine.h"
#include "agent/task/task_record.pb.h"
#include "common/ids.h"
#include "common/mutex.h"
#include "siding/v1/agent.pb.h"

namespace siding {

inline constexpr Duration kFreezePatience = std::chrono::seconds(10);
inline constexpr Duration kEndPatience = std::chrono::seconds(30);

// Thread-safe. The context outlives it.
class HostedTask {
 public:
  virtual ~HostedTask() = default;
  HostedTask(const HostedTask&) = delete;
  HostedTask& operator=(const HostedTask&) = delete;

  virtual void Execute(const v1::ToAgent& command);
  // Found again after an agent's death: to be called once, before any command.
  virtual void Adopt() = 0;
  // The report with fresh figures, if the look at the task is over by then; otherwise with the last ones.
  virtual v1::TaskReport Report(std::chrono::steady_clock::time_point until) = 0;
  // What could not be recorded is tried again: to be called now and then.
  void RecordAgain() ABSL_LOCKS_EXCLUDED(mutex_);
  // True if it is over and nothing is under way: its folder may be removed.
  bool CanForget();
  // Removes what is left of it on this machine.
  virtual void RemoveTraces() = 0;

 protected:
  using Decision = TaskMachine::Decision;
  class Dumper;

  HostedTask(HostContext& host, TaskId id, std::string folder, agent::TaskRecord record);
  // What is under way is undone. For destructors of derived classes, whose threads still need them.
  void StopWork();

  // On the worker thread, without mutex_.
  virtual void Do(const TaskAction& work) ABSL_LOCKS_EXCLUDED(mutex_) = 0;
  // After each piece of work, on the same thread.
  virtual void Done() {}
  virtual void KillProcesses() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  virtual void ReleaseGpus() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {}
  // What the worker looks at without mutex_.
  virtual void CopyFacts() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Carries out what the machine asks for. New work is begun, or left to the worker in next_ if this is on
  // it. The status is that of the last durable record.
  absl::Status Perform(const TaskActions& actions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Observe(const TaskObservation& seen) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return Perform(machine_.Observe(seen));
  }
  absl::Status TryPersist() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // An error is in the log: the earlier record is as good as the processes can tell, and RecordAgain() makes
  // up for it.
  void Persist() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { NoteRecorded(TryPersist()).IgnoreError(); }
  absl::Status PersistDurably() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Send() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Copies, for the worker and the watcher.
  agent::TaskRecord Record() ABSL_LOCKS_EXCLUDED(mutex_);
  agent::ProcessRef Init() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the image of the last dump is in its store. Takes as long as the disk does.
  bool ImageIsVisible() ABSL_LOCKS_EXCLUDED(mutex_);
  // For the files of an encrypted image while it is being restored.
  std::string PlainFolder() const { return host_.PlainFolder() + "/restore/" + outside_; }
  bool Interrupted() const { return interrupt_ || host_.stopping; }

  HostContext& host_;
  const TaskId id_;
  const std::string name_;  // "42.1.0"
  const std::string folder_;

  Mutex mutex_;
  CondVar changed_;
  TaskMachine machine_ ABSL_GUARDED_BY(mutex_);
  agent::TaskRecord& record_ ABSL_GUARDED_BY(mutex_);  // the machine's
  const v1::TaskRef ref_;                              // as its reports have it
  const std::string cluster_;                          // that started it
  const std::string outside_;  // what is this task's alone outside of its folder, see agent/os/names.h
  // Copies of the machine's, for the worker, which looks at them without mutex_.
  std::atomic<bool> interrupt_{false};
  std::atomic<bool> kill_now_{false};
  std::atomic<bool> abandon_{false};  // CRIU is to be ended by force

 private:
  void Work(TaskAction work) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status WriteRecord(bool durably) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepRoom(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status NoteRecorded(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  size_t room_ ABSL_GUARDED_BY(mutex_) = 0;                 // for the next record, on a full disk
  bool unrecorded_ ABSL_GUARDED_BY(mutex_) = false;         // the record says more than the file
  std::optional<TaskAction> next_ ABSL_GUARDED_BY(mutex_);  // what the worker begins next
  bool on_worker_ ABSL_GUARDED_BY(mutex_) = false;          // the worker asks the machine for its next work
  std::thread worker_;
};

// What a dump tells the task, and asks of it.
class HostedTask::Dumper final : public DumpObserver {
 public:
  using Steady = std::chrono::steady_clock;

  // Given an image's folder, how long it may take at most, and what says that it is to stop. Not OK: the
  // image is not to count.
  using Rehearse = std::function<absl::Status(const std::string& folder, Duration most,
                                              const std::function<bool()>& stop)>;

  // `ordered`: when it was begun, which may be some notice ago. `rehearse`: null: nothing is rehearsed.
  Dumper(HostedTask& task, const v1::ToAgent& command, Steady::time_point ordered,
         Rehearse rehearse = nullptr)
      : task_(task),
        command_(command),
        begun_(Steady::now()),
        patience_ends_(ordered + std::chrono::microseconds(command.dump().patience_us())),
        rehearse_(std::move(rehearse)) {}

  void OnProgress(Bytes done) override;
  Steady::time_point Limit() const override {
    return command_.dump().patience_us() > 0 ? patience_ends_ : Steady::time_point::max();
  }
  void OnSharing() override { shares_ = true; }
  absl::Status OnWritten(const std::string& folder, const StillHeld& held) override;
  absl::Status OnBarrier(DumpBarrier barrier) override;
  absl::StatusOr<bool> MayPass(DumpBarrier barrier, Duration most, const StillHeld& held) override;
  void OnRunsOn(Duration stopped) override;
  absl::Status OnPrepared(const Manifest& manifest, const StillHeld& held) override;
  absl::Status OnCommitting() override;
  void OnCommitted() override;
  absl::Status WhyStopped() const override ABSL_LOCKS_EXCLUDED(task_.mutex_) {
    MutexLock lock(task_.mutex_);
    return Stop();
  }

 private:
  // Until `done`; false: not in that time. Not OK: the dump is to be undone.
  absl::StatusOr<bool> Await(const std::function<bool()>& done, Duration most, const StillHeld& held)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(task_.mutex_);
  // Not OK: the dump is to be undone.
  absl::Status Stop() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(task_.mutex_);

  HostedTask& task_;
  const v1::ToAgent& command_;
  const Steady::time_point begun_;
  const Steady::time_point patience_ends_;
  const Rehearse rehearse_;
  bool shares_ = false;
  Steady::duration rehearsing_{0}, waited_{0};    // the latter for other ranks
  Steady::duration stood_still_{0};               // of that, at this try, while it did
  std::optional<Steady::time_point> stop_since_;  // the progress thread's
  bool commit_waits_ = false;                     // it is in the log that it cannot be recorded
};

}  // namespace siding
