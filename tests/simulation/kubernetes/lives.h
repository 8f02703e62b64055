// Looks at the lives of pods that are saved: what goes on, from which image, and that nothing of it is lost
// or there twice. It knows what is true in the containers, the store and the journal.
#pragma once

#include <map>
#include <set>
#include <string>

#include "controller/engine/state/cluster_state.h"
#include "siding/v1/agent.pb.h"
#include "tests/simulation/kubernetes/audit.h"
#include "tests/simulation/kubernetes/containers.h"

namespace siding::simulation::pods {

// Not thread-safe.
class Lives {
 public:
  Lives(Lab& lab, Cluster& cluster, Containers& containers, const Audit& audit, const ClusterState& recorded);

  void OnChange(const FakeStore::Event& event);
  // Of the journal.
  void OnEvent(const Event& event);
  // siding orders this of an agent.
  void OnOrder(const NodeId& node, const v1::ToAgent& order);
  // A container begins to make progress, or goes on.
  void OnRuns(const Container& container);
  void OnImage(const ImageName& image);
  void OnDelete(const ImageName& image);
  // Empty: siding may evict it.
  std::string WhyNotEvicted(const Json& pod, bool at_once) const;
  // Empty: nothing is lost with it, and nothing of it runs.
  std::string WhyNotDeleted(const Json& pod) const;
  // The pod goes on with this job, of the same owner.
  bool IsHeir(const Json& pod, int64_t number);

  // ---- At the end. ----
  // What is left of the store; empty: nothing is.
  std::string Leftover() const;

 private:
  FakeStore::Value PodOf(const Container& container) const;
  // Also of one that somebody took away by force.
  const Json* LastOf(const std::string& uid) const;
  bool IsSaved(const std::string& uid) const;
  void CheckEnded(const JobRecord& job);

  Lab& lab_;
  Cluster& cluster_;
  Containers& containers_;
  const Audit& audit_;
  const ClusterState& recorded_;
  std::map<std::string, std::pair<ImageName, Duration>> saved_;  // by uid: its newest image
  std::map<ImageName, std::string> owners_;                      // of images: the owner of its pod
  std::map<int64_t, std::string> job_owners_;                    // by number
  std::map<std::string, FakeStore::Value> pods_;                 // by uid, as they were last
  std::map<int64_t, Time> to_be_ended_;
  std::set<int64_t> may_end_;          // a pod of theirs has, by itself, or their users have let go of it
  std::set<std::string> done_owners_;  // uids: they make no pods any more
  std::set<std::string> seen_off_;     // uids whose pods left with an image
};

// Who makes the pod again; "": nobody.
std::string OwnerOf(const Json& pod);

}  // namespace siding::simulation::pods
