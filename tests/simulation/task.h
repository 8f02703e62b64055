// A task as the agent knows it: the agent's own machine (agent/task/machine.h), whose actions are carried out
// in simulated time, on a simulated machine.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "agent/task/ending.h"
#include "agent/task/machine.h"
#include "agent/task/task_record.pb.h"
#include "model/snapshot.h"
#include "siding/v1/agent.pb.h"
#include "tests/simulation/machine.h"
#include "tests/simulation/task_steps.h"

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
class Task : private TaskSteps {
 public:
  Task(Host& host, const TaskId& id);
  // One found again in its folder.
  Task(Host& host, const TaskId& id, agent::TaskRecord record)
      : TaskSteps(host.lab, std::move(record)), host_(host), id_(id) {}

  void Execute(const v1::ToAgent& command);
  void Join(const v1::JoinNetwork& network);
  void RunJoined();
  void Adopt();
  v1::TaskReport Report();
  bool CanForget() const { return IsOver(machine_.phase()) && !machine_.busy(); }
  // Its shim has said something, or has ended.
  void OnShim();

 private:
  // ---- task.cc ----
  void Perform(const TaskActions& actions);
  void Observe(const TaskObservation& seen) { Perform(machine_.Observe(seen)); }
  void Begin(TaskWork work, const v1::ToAgent& order);
  void Finish() { Observe(task::WorkDone{}); }
  void Persist(bool durably = false);
  void Send();
  void Conclude();
  TaskFolder& Folder() { return host_.machine.folders[id_]; }
  Process* InMachine() { return host_.machine.Find(id_); }
  int64_t MemoryOf() const;

  // ---- task_start.cc ----
  bool FailsByNode();
  void DoLaunch(const v1::ToAgent& command);
  void DoRestore(const v1::ToAgent& command);
  bool NoteNetwork(int number);
  void AwaitStart();
  void DoAdopt();

  // ---- task_dump.cc ----
  void DoDump(const v1::ToAgent& command);
  bool FinishesBehind(const v1::Dump& dump) const;
  bool Meets(v1::DumpBarrier barrier, const v1::Dump& dump) const;
  void Meet(v1::DumpBarrier barrier, const v1::ToAgent& command, Step then);
  void Seize(const v1::ToAgent& command);
  void WriteImage(const v1::ToAgent& command);
  void LetRun(const v1::ToAgent& command);
  void AwaitDecision(const v1::ToAgent& command);
  void CommitImage(const v1::ToAgent& command);
  void Leave(const v1::ToAgent& command);
  void EndDump(const v1::ToAgent& command, const std::string& failure, bool tier_problem = false);
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
  bool abandon_ = false;  // CRIU is to be ended by force
  Image image_;           // of the dump under way
};

}  // namespace siding::simulation
