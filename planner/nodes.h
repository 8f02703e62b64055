// The snapshot's nodes as a problem sees them: which of them are free by when, what the others lack, and what
// they can bear.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "planner/component.h"

namespace siding {

// Nodes are indices into the snapshot's, `k` is an index of a deadline. The problem must outlive it.
class Nodes {
 public:
  explicit Nodes(const Problem& problem);

  int deadlines() const { return static_cast<int>(problem_.deadlines.size()); }
  int size() const { return static_cast<int>(problem_.snapshot.nodes.size()); }
  const NodeId& id(int node) const { return problem_.snapshot.nodes[node].id; }
  // By the candidate's rank; -1: not one of the snapshot's.
  const std::vector<int>& Of(int candidate) const { return of_[candidate]; }

  // Independent of victims.
  bool IsFreeByItself(int node, int k) const;
  // It is to be freed, if that is worth while.
  bool IsWanted(int node) const { return wanted_[node]; }
  void LeaveOut(int node) { wanted_[node] = false; }
  // That have to be freed; below 0: there are more than enough.
  int Missing(int k) const;
  Limits LimitsOf(int node, int k) const;

  // Adds to the loads of all nodes what the victim's leaving changes, or takes it away (`sign`).
  void AddTo(std::vector<Load>& loads, const Victim& victim, int sign) const;

 private:
  void CountFree();

  const Problem& problem_;
  std::unordered_map<NodeId, int> index_;
  std::vector<std::vector<Resources>> free_;  // by deadline and node, if no victim leaves
  std::vector<bool> eligible_, wanted_;
  std::vector<std::vector<int>> of_;
};

// Less those without which there are still enough nodes, the most expensive first. A solution that is the
// cheapest has none, nor has one that ClearEnough() has found. With several deadlines none is left out.
std::vector<Victim> Trimmed(const Problem& problem, std::vector<Victim> victims);

// By deadline: the nodes (ascending) that will be free by then if just these leave, each by its own.
std::vector<std::vector<int>> FreeNodes(const Problem& problem, const std::vector<Victim>& victims);

// The job is leaving its nodes already, and only these requests will have them.
bool LeavesForUs(const Problem& problem, const JobView& job);
// It will have left its nodes by itself, and these requests may have them.
bool LeavesBy(const Problem& problem, const JobView& job, Duration within);
// When; none: not by itself, or for others.
std::optional<Time> LeavesAt(const Problem& problem, const JobView& job);
// What it gives back then.
Resources GivesBack(const JobView& job);

// The node could serve the request if nothing ran there.
bool IsEligible(const NodeView& node, const Resources& per_node);

// Free nodes that the request cannot use and that have room for one rank of this job: where it could migrate.
std::vector<int> SpareNodes(const Snapshot& snapshot, const Resources& wanted, const JobView& job);

}  // namespace siding
