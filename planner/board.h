// The nodes as they will be `within` from now, while victims are tried on them: who leaves gives back what it
// holds, and takes RAM (suspended), local disk, or time on the node's way to storage.
#pragma once

#include <vector>

#include "model/snapshot.h"
#include "planner/options.h"

namespace siding {

// Nodes are named by their index in the snapshot, which must outlive the board. Not thread-safe.
class Board {
 public:
  // Jobs that are leaving already count as gone if their nodes are promised to nobody or to this request and they
  // are predicted to be gone in time. If `within` is negative, only what is free now is free.
  Board(const Snapshot& snapshot, const Request& request, const std::vector<Candidate>& candidates, Duration within);

  void Leave(const Candidate& candidate, const Option& option) { Apply(candidate, option, +1); }
  void Stay(const Candidate& candidate, const Option& option) { Apply(candidate, option, -1); }

  // The node is up and could serve the request if nothing ran there.
  bool IsEligible(int node) const { return states_[node].eligible; }
  // It can serve the request though nobody is asked to leave.
  bool IsFreeAnyway(int node) const { return states_[node].free_anyway; }
  bool IsFree(int node) const { return states_[node].eligible && states_[node].free.Covers(request_.per_node); }

  // What those who leave need of the node is there: RAM for the frozen beside the request (if it could come
  // here), disk for the dumps, and time to write them one after another at the node's own rates.
  bool Fits(int node) const;
  // Until all dumps of this node to that tier are written.
  Duration WriteTime(int node, Tier tier) const;

  const Resources& FreeOn(int node) const { return states_[node].free; }
  Duration within() const { return within_; }
  int size() const { return static_cast<int>(states_.size()); }

 private:
  struct NodeState {
    Resources free;
    Bytes frozen;
    Bytes to_disk;
    Bytes to_shared;
    bool eligible = false;
    bool free_anyway = false;
  };

  void Apply(const Candidate& candidate, const Option& option, int sign);

  const Snapshot& snapshot_;
  const Request& request_;
  const Duration within_;
  std::vector<NodeState> states_;
};

// The job is leaving, and this request may have what it leaves.
bool LeavesFor(const JobView& job, const Request& request);

}  // namespace siding
