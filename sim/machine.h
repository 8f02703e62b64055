// The nodes of the simulated machine: for each, the job that runs on it, the job that is frozen in its
// memory, and the job for which it is kept.
#pragma once

#include <vector>

namespace siding::sim {

inline constexpr int kNobody = -1;

class Machine {
 public:
  explicit Machine(int nodes);

  int nodes() const { return static_cast<int>(runner_.size()); }
  // No job runs or is frozen there, and it is kept for none.
  int free() const { return static_cast<int>(free_.size()); }
  bool is_free(int node) const { return at_[node] >= 0; }
  int runner(int node) const { return runner_[node]; }
  int sleeper(int node) const { return sleeper_[node]; }
  int kept_for(int node) const { return kept_for_[node]; }

  // `count` free nodes, which the job takes; there must be as many.
  std::vector<int> Take(int count, int job);
  // A node on which no job runs: free, or kept for this job, or where it sleeps.
  void Run(int node, int job);
  void Stop(int node);
  // Frozen in the node's memory; others may compute there.
  void Sleep(int node, int job);
  void Wake(int node);
  void Keep(int node, int job);
  void Unkeep(int node);

 private:
  void Update(int node);  // into or out of the list of free nodes

  std::vector<int> runner_, sleeper_, kept_for_;
  std::vector<int> free_;
  std::vector<int> at_;  // a node's place in free_, or -1
};

}  // namespace siding::sim
