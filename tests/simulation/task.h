// A task as the agent knows it: agent/host/task.h without threads, processes and files. What it does in which
// order, what it writes down before which step, and what it makes of a command while another is under way is
// meant to be the same there and here; what the end of a task means is the same function.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/task/ending.h"
#include "agent/host/task_record.pb.h"
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
      : host_(host), id_(id), record_(std::move(record)) {}

  void Execute(const v1::ToAgent& command);
  void Adopt();
  v1::TaskReport Report();
  bool CanForget() const { return IsOver(record_.report().phase()) && !busy_; }
  // Its shim has said something, or has ended.
  void OnShim();

 private:
  enum class Decision { kNone, kCommit, kAbort };
  using Step = std::function<void()>;

  // ---- task.cc ----
  Step Plan(const v1::ToAgent& command);
  void Begin(const v1::ToAgent& command, const Step& operation);
  void Finish();
  void Persist(bool durably = false);
  void SetPhase(v1::TaskPhase phase, int64_t op = 0);
  void Fail(int64_t op, const std::string& why);
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
  void AwaitStart(v1::TaskPhase failed);
  void DoAdopt();

  // ---- task_dump.cc ----
  Step PlanDump(const v1::ToAgent& command);
  void DoDump(const v1::ToAgent& command);
  void WriteImage(const v1::ToAgent& command);
  void AwaitDecision(const v1::ToAgent& command);
  void CommitImage(const v1::ToAgent& command);
  void EndDump(const v1::ToAgent& command, const std::string& failure);
  std::string WhyStop(const v1::ToAgent& command) const;  // empty: the dump goes on
  ImageName NameOfImage(const v1::ToAgent& command) const;

  // ---- task_verbs.cc ----
  Step PlanSuspend(const v1::ToAgent& command);
  void DoSuspend(const v1::ToAgent& command);
  void EndSuspend(const v1::ToAgent& command, const std::string& failure);
  void DoResume();
  Step PlanSave(const v1::ToAgent& command);
  void DoSave(const v1::ToAgent& command);
  void DoKill(Duration grace);
  // `then` with what went wrong, or with nothing.
  void GiveNotice(Duration notice, std::function<void(const std::string&)> then);
  void ThawIfFrozen(bool parked);

  Host& host_;
  const TaskId id_;
  agent::TaskRecord record_;
  bool busy_ = false;
  v1::ToAgent current_;
  std::optional<v1::ToAgent> pending_;
  Decision decision_ = Decision::kNone;
  bool ended_ = false;  // the shim is gone
  bool interrupt_ = false;
  bool kill_now_ = false;
  bool abandon_ = false;
  std::optional<Time> patience_ends_;  // of the dump under way

  std::function<bool()> ready_;
  Step then_;
  std::shared_ptr<int> life_ = std::make_shared<int>();  // whoever waits for this task holds it weakly
};

}  // namespace siding::simulation
