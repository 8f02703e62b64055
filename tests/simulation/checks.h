// What must be true of a simulated world: at every moment, and when it has come to rest.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/engine/state/cluster_state.h"
#include "tests/simulation/machine.h"

namespace siding::simulation {

// Where it is for every node that may restore it.
ImageName ImageOf(const CheckpointRecord& checkpoint, int rank);

// An image that the checkpoint needs is on the disk of a node that an operator has said to be lost.
bool LiesOnALostDisk(const ClusterState& recorded, const CheckpointRecord& checkpoint);

// Not thread-safe. Looks at what has been recorded and at what there really is, never at what the engine
// believes.
class Checks {
 public:
  // `connected`: the controller hears what is said of this node.
  Checks(Lab& lab, const ClusterState& recorded, std::function<bool(const NodeId&)> connected)
      : lab_(lab), recorded_(recorded), connected_(std::move(connected)) {}
  void Watch(const Machine& machine) { machines_.push_back(&machine); }
  // The controller has heard nothing of this node for too long.
  std::function<bool(const NodeId&)> is_silent = [](const NodeId&) { return false; };

  // ---- At every moment. ----
  void OnEvent(const Event& event);
  // By `put_back` an older copy of the journal takes its place.
  void PutBack(const std::function<void()>& put_back);
  void OnStartOrder(const TaskId& task);
  // A process has begun to run, or goes on.
  void OnRunning();
  void OnImage(const ImageName& name);
  void OnDelete(const ImageName& name);
  // This job is to have started by its deadline: nothing goes wrong in this world.
  void OnPromise(JobId job) { promises_.insert(job); }
  void OnUserKill(JobId job) { killed_by_user_.insert(job); }
  void OnUserRestart(JobId job) { restarted_by_user_.insert(job); }
  void OnJoin(const TaskId& task, const v1::JoinNetwork& network);
  // Before all that is on its disk is gone.
  void OnBurnt(const NodeId& node);
  void OnMemoryLost(const NodeId& node);  // before its images are
  bool WasLostWithMemory(const ImageName& image) const { return memory_lost_.contains(image); }

  // ---- At the end. ----
  // What is not at rest yet; empty: everything is.
  std::string Unrest() const;
  void AtTheEnd();

 private:
  bool IsLost(const TaskId& task) const;
  void CheckProcesses(const Machine& machine, std::map<JobId, TaskId>& seen);
  void CheckRestorable(const Event& event, const CheckpointChanged& changed);
  void CheckCopied(const CopiesChanged& changed);
  void CheckDamaged(const Event& event, const CheckpointChanged& changed);
  void CheckRefused(const Event& event, const CheckpointChanged& changed);
  void CheckStartsOver(const Event& event);
  void CheckHeld(const Event& event, const JobMoved& move);
  void CheckMoment(const Event& event);
  void CheckStart(const Event& event, const JobMoved& move);
  bool IsGivenUp(const NodeId& node, const TaskId& task) const;
  // Nobody may have noticed yet.
  bool HasBurnt(const ImageName& image) const { return burnt_images_.contains(image); }
  bool IsOutOfReach(const CheckpointRecord& checkpoint) const;
  void CheckLost(const JobRecord& job);
  void CheckEndOfJob(const JobRecord& job);
  void CheckImages();
  const JobRecord* Find(JobId id) const;

  Lab& lab_;
  const ClusterState& recorded_;
  const std::function<bool(const NodeId&)> connected_;
  std::vector<const Machine*> machines_;
  std::set<CheckpointId> committed_;
  std::set<JobId> promises_;
  std::set<JobId> killed_by_user_, restarted_by_user_;
  std::set<NodeId> burnt_;
  std::set<ImageName> burnt_images_;
  std::set<ImageName> memory_lost_;  // that were in the memory of nodes whose power was cut
  // The last incarnation of the job of which nothing ran on the node any more, if it was true what an
  // operator had said of it when the next one began.
  std::map<std::pair<NodeId, JobId>, int> given_up_;
  std::set<std::pair<JobId, int>> starts_;      // by job and incarnation
  std::set<std::pair<JobId, int>> old_starts_;  // those of before a copy was put back
  // Since the copy that was put back: what was started and dumped, and which images need not exist any more.
  std::set<std::pair<JobId, int>> lost_starts_;
  std::set<CheckpointId> lost_checkpoints_, excused_, gone_, copies_gone_;
};

}  // namespace siding::simulation
