// The jobs that a cluster's pods are to siding, and its nodes: pods and nodes go in, changes of jobs come
// out. Pure.
//
// A job is a pod that asks something of siding, or the pods of a gang; its number is written on its pods
// (objects/marks.h), so that it stays the same when a pod comes in the place of one that made way, whoever
// looks. What has no number yet is listed (Unnumbered), and is no job until it has one. All other pods are
// nobody's jobs: nodes are that much smaller. What siding cannot do for a pod that asks it is said once a
// change (TakeRefusals), and the pod is left alone.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/ids.h"
#include "controller/platform/kubernetes/objects/asks.h"
#include "controller/platform/kubernetes/objects/node.h"
#include "controller/platform/kubernetes/objects/pod.h"
#include "controller/platform/kubernetes/watch/informer_state.h"
#include "controller/platform/manager.h"

namespace siding::kubernetes {

// A label of jobs: one of their pods, "default/a".
inline constexpr char kPodLabel[] = "pod";

// A pod of batch work that has a node: what an agent there would know of it.
struct PodTask {
  TaskId id;  // of its job, and its place among the pods of that
  NodeId node;
  ObjectName pod;
  std::string uid;
  std::optional<Time> started;    // its first container was
  std::optional<bool> succeeded;  // its processes are gone
  JobSpec spec;
};

struct Refusal {
  ObjectName pod;
  std::string uid;
  std::string why;
  bool operator==(const Refusal&) const = default;
};

class JobTable {
 public:
  // Whether the number on a pod is siding's. Users can write annotations, too.
  using IsOurs = std::function<bool(const Pod&)>;

  // Pods of the namespaces `left_alone` are, whatever they ask. A number that is not siding's is none.
  JobTable(std::set<std::string> left_alone, IsOurs is_ours)
      : left_alone_(std::move(left_alone)), is_ours_(std::move(is_ours)) {}

  void OnPods(const std::vector<ObjectChange>& changes);
  void OnNodes(const std::vector<ObjectChange>& changes);

  // Since the last call.
  ManagerChanges TakeChanges();
  std::vector<Refusal> TakeRefusals();

  struct Unnumbered {
    ObjectName pod;
    std::string uid;
    std::string version;
    std::string gang_name;      // "": it is alone
    std::optional<JobId> gang;  // what others of its gang have
  };
  struct Without {
    std::vector<Unnumbered> pods;  // in the order in which they were made
    JobId highest{0};              // that a pod has
  };
  Without FindUnnumbered() const;
  // Where the pods of this job may be, by its label; nothing: it is not known here.
  std::optional<std::set<NodeId>> NodesFor(const JobSpec& job) const;
  // Null: there is no such pod.
  const Pod* Find(const ObjectName& name) const;
  std::vector<PodTask> Tasks() const;
  // By rank: those that are not being deleted, and are not over.
  std::vector<const Pod*> PodsOf(JobId job) const;
  // The same, or while there are none of these, all that are left.
  std::vector<const Pod*> PodsThatCount(JobId job) const;
  std::vector<JobId> Jobs() const;
  const std::map<std::string, Node>& nodes() const { return nodes_; }
  // With all that holds something of the node now, pods that are ending included, as its kubelet counts.
  bool HasRoom(const std::string& node, const Pod& pod) const;

 private:
  struct Entry {
    Pod pod;
    std::optional<Ask> ask;  // none: siding leaves it alone
    std::optional<JobId> number;
    std::string refused;  // why siding leaves it alone although it asks
  };
  // `said`: why it was refused before.
  void Put(const Pod& pod, const std::string& said);
  void Drop(const ObjectName& name);
  std::string WhyNot(const Pod& pod, const Ask& ask) const;
  // What pods request of a node: those that are no jobs, or all of them.
  Resources TakenOf(const std::string& node, bool by_jobs_too) const;
  ManagedJob JobOf(JobId number) const;
  ManagedNode NodeOf(const Node& node) const;

  const std::set<std::string> left_alone_;
  const IsOurs is_ours_;
  std::map<ObjectName, Entry> pods_;
  std::map<JobId, std::set<ObjectName>> jobs_;
  std::map<std::string, Node> nodes_;
  std::map<std::string, std::set<ObjectName>> on_nodes_;  // the pods that hold something of each
  // What has changed.
  std::set<JobId> changed_jobs_;
  std::set<std::string> changed_nodes_;
  std::vector<Refusal> refusals_;
};

}  // namespace siding::kubernetes
