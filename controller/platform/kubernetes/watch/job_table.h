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
#include "controller/platform/kubernetes/objects/budget.h"
#include "controller/platform/kubernetes/objects/host_paths.h"
#include "controller/platform/kubernetes/objects/node.h"
#include "controller/platform/kubernetes/objects/pod.h"
#include "controller/platform/kubernetes/watch/informer_state.h"
#include "controller/platform/manager.h"

namespace siding::kubernetes {

// Labels of jobs: one of their pods, "default/a"; and of those that go on with the next pod of their owner,
// what that one is known by (objects/saving.h).
inline constexpr char kPodLabel[] = "pod";
inline constexpr char kOwnerLabel[] = "owner";  // "Job/train"
inline constexpr char kOwnerUidLabel[] = "owner-uid";
inline constexpr char kPlaceLabel[] = "place";

// A pod of batch work that has a node: what an agent there would know of it.
struct PodTask {
  TaskId id;  // of its job, and its place among the pods of that
  NodeId node;
  ObjectName pod;
  std::string uid;
  std::optional<Time> started;    // its first container was
  std::optional<bool> succeeded;  // its processes are gone, or about to be
  JobSpec spec;
  std::string not_saved;    // why no agent can freeze or save it; "": one can
  DesiredState::Next next;  // how it is to start, if an agent has not been told yet
  // What is recorded of its start is that it is over: of a pod whose agent knows nothing of it, it failed.
  bool start_is_over = false;
  // The cluster has ended it, and its job goes on, if there is a next pod: its end says nothing of its work.
  bool disrupted = false;
  // The same, of one that failed because somebody has deleted it. Its object may stay for long.
  bool failed_deleted = false;
  bool leaves = false;  // it is being deleted, by whomever

  bool was_ended() const { return disrupted || failed_deleted; }
  bool is_over() const { return succeeded || was_ended(); }
};

// A pod that agents are asked about when it starts, by its runtime class, and that is no task of theirs.
struct PlainPod {
  NodeId node;
  ObjectName pod;
  std::string uid;
  bool for_good = true;  // it is not about to become one
};

// A job that goes on and has no pod at the moment, with the one that is to make one.
struct Orphan {
  JobId job;
  ObjectName owner;
  std::string kind;
  std::string uid;
};

struct Refusal {
  ObjectName pod;
  std::string uid;
  std::string why;
};

// What a pod is to siding.
struct PodStanding {
  Pod pod;
  std::optional<JobId> number;  // none: it asks nothing, has none yet, or is refused
  std::string refused;          // why siding leaves it alone although it asks
};

// What is promised of a node, and does not show there yet.
struct Promised {
  Amounts requests;
  int pods = 0;
};

class JobTable {
 public:
  // Whether the number on a pod is siding's. Users can write annotations, too.
  using IsOurs = std::function<bool(const Pod&)>;

  // Pods of the namespaces `left_alone` are, whatever they ask. A number that is not siding's is none.
  // `saves`: agents can freeze and save pods, also those with these folders of their nodes.
  JobTable(std::set<std::string> left_alone, IsOurs is_ours, bool saves = false, HostPaths host_paths = {})
      : left_alone_(std::move(left_alone)),
        is_ours_(std::move(is_ours)),
        saves_(saves),
        host_paths_(std::move(host_paths)) {}

  void OnPods(const std::vector<ObjectChange>& changes);
  void OnNodes(const std::vector<ObjectChange>& changes);
  void OnBudgets(const std::vector<ObjectChange>& changes);
  // The server has taken a change of siding's of this node, or may have: what is known of it is older until
  // OnNodes().
  void OnNodeWritten(const std::string& name);
  // The node is this one now: if that is what is known of it, it is not older.
  void OnNodeRead(const Object& node);
  // These jobs go on with the next pod of their owner: until then they wait, and are not gone.
  void OnNext(std::map<JobId, DesiredState::Next> next);
  // The owner of this job makes no pods any more: it is gone.
  void OnOwnerGone(JobId job);

  // Since the last call.
  ManagerChanges TakeChanges();
  std::vector<Refusal> TakeRefusals();

  struct Unnumbered {
    ObjectName pod;
    std::string uid;
    std::string version;
    std::string gang_name;      // "": it is alone
    std::optional<JobId> gang;  // what others of its gang have
    std::optional<JobId> heir;  // the job that it goes on with,
    int starts = 1;             // and that its start is the nth of
  };
  struct Without {
    std::vector<Unnumbered> pods;  // in the order in which they were made
    std::vector<Refusal> surplus;  // beside a gang that is whole: left alone as long as that is so
    JobId highest{0};              // that a pod has
  };
  Without FindUnnumbered() const;
  // Where the pods of this job may be, by its label; nothing: it is not known here.
  std::optional<std::set<NodeId>> NodesFor(const JobSpec& job) const;
  // Null: there is no such pod.
  const Pod* Find(const ObjectName& name) const;
  std::optional<PodStanding> StandingOf(const ObjectName& name) const;
  // Of jobs that go on also pods that are being deleted beside the one in their place.
  std::vector<PodTask> Tasks() const;
  // Those that hold a node.
  std::vector<PlainPod> PlainPods() const;
  // By rank: those that are not being deleted, and are not over.
  std::vector<const Pod*> PodsOf(JobId job) const;
  // The same, or while there are none of these, the last ones that there were.
  std::vector<const Pod*> PodsThatCount(JobId job) const;
  std::vector<JobId> Jobs() const;
  std::vector<Orphan> Orphans() const;
  const std::map<std::string, Node>& nodes() const { return nodes_; }
  // The node takes pods in now, and this one may be there.
  bool MayBeOn(const std::string& node, const Pod& pod) const;
  // With all that holds something of the node now, pods that are ending included, as its kubelet counts.
  bool HasRoom(const std::string& node, const Pod& pod, const Promised& beside = {}) const;

 private:
  struct Entry {
    Pod pod;
    std::optional<Ask> ask;  // none: siding leaves it alone
    std::optional<JobId> number;
    std::string refused;        // why siding leaves it alone although it asks
    std::string not_saved;      // why no agent can save it
    std::optional<JobId> left;  // the job that it was before its user took the annotation away
  };
  void TakeHeirs();
  // Of a job that goes on.
  void NoteStart(JobId job, const Pod& pod);
  // `before`: what was known of the same pod; null: nothing.
  void Put(const Pod& pod, const Entry* before);
  void Drop(const ObjectName& name);
  std::string WhyNot(const Entry& entry, const Ask& ask) const;
  static std::string WhyNobodyPlaces(const Pod& pod, const std::optional<Ask>& ask);
  static bool IsUsable(const Node& node);
  // What pods request of a node: those that are no jobs, or all of them.
  Amounts TakenOf(const std::string& node, bool by_jobs_too) const;
  ManagedJob JobOf(JobId number, const std::vector<const Pod*>& pods) const;
  void AddTask(const ManagedJob& job, const Pod& pod, const TaskId& id, std::vector<PodTask>& tasks) const;
  bool IsBeingReplaced(JobId number, const Pod& pod) const;
  // Its pods have come to their end, and none is to come in their place.
  bool IsOverWithPods(JobId number) const;
  // It goes on, and has no pod: there is none, or the cluster has ended it.
  bool WaitsForNextPod(JobId number) const;
  // Nobody makes a pod that goes on with it: its owner makes none any more, or its pod runs on for itself.
  bool HasNoNext(JobId number) const { return ownerless_.contains(number) || left_.contains(number); }
  ManagedJob JobWithoutPods(JobId number, const DesiredState::Next& next) const;
  std::map<std::map<std::string, std::string>, std::vector<JobId>> Heritages() const;
  // What a job has to have in common with a pod that it goes on with, which could be saved or not: what is in
  // its image is not lost because of what may be in the next one.
  std::map<std::string, std::string> HeritageOf(const Pod& pod, const Ask& ask) const;
  // The same, of one that asks and whose job goes on after it.
  std::map<std::string, std::string> LabelsOf(const Entry& entry) const;
  // What the budgets that cover this pod let go.
  void AddAllowances(const Pod& pod, ManagedJob& job) const;
  ManagedNode NodeOf(const Node& node) const;

  const std::set<std::string> left_alone_;
  const IsOurs is_ours_;
  const bool saves_;
  const HostPaths host_paths_;
  std::map<ObjectName, Entry> pods_;
  std::map<JobId, std::set<ObjectName>> jobs_;
  std::map<std::string, Node> nodes_;
  std::map<std::string, std::set<ObjectName>> on_nodes_;  // the pods that hold something of each
  std::map<ObjectName, Budget> budgets_;
  std::map<JobId, DesiredState::Next> next_;
  bool next_known_ = false;
  std::map<JobId, int> starts_;  // of next_: the highest that a pod had, whether it began or not
  std::set<JobId> ownerless_;    // of next_: their owners make no pods any more
  std::map<JobId, std::set<ObjectName>> left_;  // the pods that run on, by the job that they were
  // What has changed.
  std::set<JobId> changed_jobs_;
  std::set<std::string> changed_nodes_;
  std::vector<Refusal> refusals_;
};

}  // namespace siding::kubernetes
