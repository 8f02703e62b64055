// A pod as its node's agent knows it (agent/node/pod_task.cc): the agent's own machine
// (agent/task/machine.h), whose actions are carried out in simulated time, on a simulated container.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "model/snapshot.h"
#include "tests/simulation/kubernetes/containers.h"
#include "tests/simulation/task_steps.h"

namespace siding::simulation::pods {

// What all pods of an agent share.
struct PodHost {
  Lab& lab;
  Containers& containers;
  const std::string node;
  std::map<TaskId, agent::TaskRecord>& records;  // on the node's disk
  std::function<void(v1::FromAgent)> send;
  Rate dump;
};

// Not thread-safe. Destroying it is the death of its agent: nothing that it waited for happens any more.
class HostedPod : private TaskSteps {
 public:
  HostedPod(PodHost& host, const TaskId& id, const v1::Pod& pod);
  // One found again.
  HostedPod(PodHost& host, const TaskId& id, agent::TaskRecord record);

  void Execute(const v1::ToAgent& command);
  void Adopt();
  v1::TaskReport Report();
  bool CanForget() const;
  const std::string& uid() const { return record_.pod().pod().uid(); }

  // As of ContainerOwner.
  absl::StatusOr<std::optional<ImageName>> OnStarting(const std::string& container);
  void OnMade(const std::string& container, const absl::StatusOr<int>& made);

 private:
  void Perform(const TaskActions& actions);
  void Observe(const TaskObservation& seen) { Perform(machine_.Observe(seen)); }
  void Begin(TaskWork work, const v1::ToAgent& order);
  void Finish() { Observe(task::WorkDone{}); }
  void Persist() { host_.records[id_] = record_; }
  void Send();

  void DoStart(const v1::ToAgent& command);
  void DoRestore(const v1::ToAgent& command);
  void AwaitMade();
  void LookForContainer();
  void NoteMade(int pid);
  void DoSuspend();
  void DoResume();
  void DoDump(const v1::ToAgent& command);
  void WriteImage(const v1::ToAgent& command);
  void Commit(const v1::ToAgent& command);
  void EndDump(const v1::ToAgent& command, const std::string& failure);
  void Leave();
  void AwaitEnd();
  void DoKill();
  void DoAdopt();
  void Finalize();

  // Null: it does not run at the moment.
  const Container* Running() const;
  bool IsFrozen() const { return Running() != nullptr && !Running()->since; }
  void ThawIfFrozen();
  ImageName NameOfImage() const;
  bool ImageIsVisible() const;

  PodHost& host_;
  const TaskId id_;
  std::optional<ImageName> image_;    // to be restored from; verified
  std::optional<absl::Status> made_;  // what became of the start
  bool unsure_ = false;               // it may have been made, or still be
  std::optional<agent::ShimExit> exit_;
  Duration done_when_frozen_{0};
};

}  // namespace siding::simulation::pods
