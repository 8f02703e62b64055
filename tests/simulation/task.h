// A task as the agent knows it: the agent's own machine (agent/task/machine.h), whose actions are carried out
// in simulated time, on a simulated machine.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/task/ending.h"
#include "agent/task/machine.h"
#include "agent/task/task_record.pb.h"
#include "model/snapshot.h"
#include "siding/v1/agent.pb.h"
#include "tests/simulation/machine.h"

namespace siding::simulation {

// What all tasks of an agent share.
struct Host {
  Lab& lab;
  Machine& machine;
  std::function<void(v1::FromAgent)> send;
  Rate dump;     // at both tiers
  Rate restore;  // and what they really take in a world without faults
};

// Not thread-safe. Destroying it is the death of its agent: nothing that it waited for happens any more.
class Task {
 public:
  Task(Host& host, const TaskId& id);
  // One found again in its folder.
  Task(Host& host, const TaskId& id, agent::TaskRecord record)
      : host_(host), id_(id), machine_(std::move(record)) {}

  void Execute(const v1::ToAgent& command);
  void Adopt();
  v1::TaskReport Report();
  bool CanForget() const { return IsOver(machine_.phase()) && !machine_.busy(); }
  // Its shim has said something, or has ended.
  void OnShim();

 private:
  using Decision = TaskMachine::Decision;
  using Step = std::function<void()>;

  // ---- task.cc ----
  void Perform(const TaskActions& actions);
  void Observe(const TaskObservation& seen) { Perform(machine_.Observe(seen)); }
  void Begin(TaskWork work, const v1::ToAgent& order);
  void Finish() { Observe(task::WorkDone{}); }
  void Persist(bool durably = false);
  void Send();
  void Conclude();
  // Goes on with `then` when `ready`, or at `until` if that is sooner.
  void Wait(std::optional<Time> until, std::function<bool()> ready, Step then);
  void WakeAt(Time when);
  void Pause(Duration least, Duration most, Step then);
  void Notify();
  Time In(Duration delay) const { return host_.lab.timeline.Now() + delay; }
  TaskFolder& Folder() { return host_.machine.folders[id_]; }
  Process* InMachine() { return host_.machine.Find(id_); }
  bool Draws(double chance) { return host_.lab.random.Chance(chance); }
  int64_t MemoryOf() const;

  // ---- task_start.cc ----
  void DoLaunch(const v1::ToAgent& command);
  void DoRestore(const v1::ToAgent& command);
  void AwaitStart();
  void DoAdopt();

  // ---- task_dump.cc ----
  void DoDump(const v1::ToAgent& command);
  void WriteImage(const v1::ToAgent& command);
  void AwaitDecision(const v1::ToAgent& command);
  void CommitImage(const v1::ToAgent& command);
  void EndDump(const v1::ToAgent& command, const std::string& failure);
  std::string WhyStop() const;  // empty: the dump goes on
  ImageName NameOfImage(const v1::ToAgent& command) const;

  // ---- task_verbs.cc ----
  void DoSuspend(const v1::ToAgent& command);
  void EndSuspend(const std::string& failure);
  void DoResume();
  void DoSave(const v1::ToAgent& command);
  void DoKill(Duration grace);
  // `then` with what went wrong, or with nothing.
  void GiveNotice(Duration notice, std::function<void(const std::string&)> then);
  void ThawIfFrozen(bool parked);

  Host& host_;
  const TaskId id_;
  TaskMachine machine_;
  agent::TaskRecord& record_ = machine_.record();
  bool abandon_ = false;               // CRIU is to be ended by force
  std::optional<Time> patience_ends_;  // of the dump under way

  std::function<bool()> ready_;
  Step then_;
  std::shared_ptr<int> life_ = std::make_shared<int>();  // whoever waits for this task holds it weakly
};

}  // namespace siding::simulation
