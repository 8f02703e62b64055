// One node without its agent: processes, their shims, and the folders of tasks on its disk. What is here goes
// on when the agent dies; at a power cut the processes are gone, and the disk remains.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "agent/task/shim.pb.h"
#include "agent/task/task_record.pb.h"
#include "common/ids.h"
#include "model/job.h"
#include "tests/simulation/lab.h"

namespace siding::simulation {

// STATE/tasks/<task>/
struct TaskFolder {
  agent::TaskRecord record;                  // task.json
  std::optional<agent::TaskRecord> durable;  // as it was when it was last written through to the disk
  std::optional<agent::ShimRunning> running;
  std::optional<agent::ShimFailed> failed;
  std::optional<agent::ShimExit> exit;
  int restored = 0;  // number of the process that waits for its other ranks
};

struct Process {
  Program program;
  int rank = 0;
  Duration total{0};  // of work, at which it ends
  Duration work{0};   // done until `since`
  Time since;
  bool frozen = false;  // by the freezer
  bool parked = false;  // frozen for others: it uses no slots even when it is thawed to be dumped
  bool seized = false;  // by CRIU
  bool alone = false;   // it waits for its job's network
  bool dumped = false;  // and CRIU ends it, whatever becomes of the agent
  int saves = 0;        // its marker's version
  Resources uses;
  uint64_t change = 0;  // counts everything that makes an expected end void
  bool Runs() const { return !frozen && !seized && !alone; }
};

// Not thread-safe.
class Machine {
 public:
  Machine(Lab& lab, NodeId node, Resources capacity)
      : lab_(lab), node_(std::move(node)), capacity_(capacity) {}
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // ---- Called by the agent. ----
  struct Start {
    Program program;
    Resources uses;
    Duration from{0};       // the work that is done already
    Duration takes{0};      // until it runs
    bool alone = false;     // until Join()
    bool restores = false;  // alone, it stands still
    std::optional<std::string> fails_with;
    bool fails_outside = false;  // because of what is around the task
    bool refused = false;        // because of what criu finds in its image
  };
  void StartShim(const TaskId& id, const Start& start);
  bool HasShim(const TaskId& id) const { return shims_.contains(id); }
  void KillAll(const TaskId& id);    // SIGKILL; a shim that is still at the start gives up
  void Terminate(const TaskId& id);  // SIGTERM
  void TellToSave(const TaskId& id);
  void Freeze(const TaskId& id, bool parked);
  void Thaw(const TaskId& id, bool parked);
  void Seize(const TaskId& id);
  void Release(const TaskId& id);
  void Join(const TaskId& id);
  // CRIU has written the image and been told to end the processes.
  void EndDumped(const TaskId& id);
  Process* Find(const TaskId& id);
  Duration WorkOf(const Process& process) const;
  // Called when a shim has something to say, or is gone; empty while there is no agent.
  std::function<void(const TaskId&)> watcher;

  // ---- What happens to it. ----
  void CutPower();
  void OnAgentDeath();              // CRIU finds that nobody answers
  void KillShim(const TaskId& id);  // nobody will see how its task ends

  std::string fault;             // why no task can start there; empty: they can
  bool fault_is_seen = false;    // by its agent
  bool local_in_memory = false;  // its local tier, which is gone when its power is

  std::map<TaskId, TaskFolder> folders;
  const std::map<TaskId, Process>& processes() const { return processes_; }
  const NodeId& node() const { return node_; }
  const Resources& capacity() const { return capacity_; }
  int boot() const { return boot_; }

 private:
  struct Shim {
    bool gave_word = false;
    int number = 0;
  };
  void Run(TaskFolder& folder, int number);
  void End(const TaskId& id, int code, int signal);
  void CountWork(Process& process);
  void GoOn(const TaskId& id, Process& process);
  void After(Duration delay, std::function<void()> what);  // unless the power is cut before
  void Tell(const TaskId& id);

  Lab& lab_;
  const NodeId node_;
  const Resources capacity_;
  int boot_ = 1;
  int shims_started_ = 0;
  std::map<TaskId, Shim> shims_;  // that live
  std::map<TaskId, Process> processes_;
};

}  // namespace siding::simulation
