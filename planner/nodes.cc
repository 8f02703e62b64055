#include "planner/nodes.h"

#include <algorithm>
#include <utility>

namespace siding {

Nodes::Nodes(const Problem& problem) : problem_(problem) {
  index_.reserve(problem.snapshot.nodes.size());
  for (int node = 0; node < size(); ++node) index_[id(node)] = node;
  CountFree();
  for (int node = 0; node < size(); ++node) wanted_.push_back(eligible_[node] && !IsFreeByItself(node, 0));
  for (const Candidate& candidate : problem.candidates) {
    std::vector<int>& nodes = of_.emplace_back();
    for (const NodeId& id : candidate.job->nodes) {
      auto it = index_.find(id);
      nodes.push_back(it != index_.end() ? it->second : -1);
    }
  }
}

void Nodes::CountFree() {
  for (const NodeView& node : problem_.snapshot.nodes)
    eligible_.push_back(IsEligible(node, problem_.per_node));
  for (const Deadline& deadline : problem_.deadlines) {
    std::vector<Resources>& free = free_.emplace_back();
    for (const NodeView& node : problem_.snapshot.nodes) free.push_back(node.free);
    for (const JobView& job : problem_.snapshot.jobs) {
      if (!LeavesBy(problem_, job, deadline.within)) continue;
      for (const NodeId& node : job.nodes) {
        if (auto it = index_.find(node); it != index_.end()) free[it->second] += GivesBack(job);
      }
    }
  }
}

bool Nodes::IsFreeByItself(int node, int k) const {
  return eligible_[node] && free_[k][node].Covers(problem_.per_node);
}

int Nodes::Missing(int k) const {
  int missing = problem_.deadlines[k].nodes;
  for (int node = 0; node < size(); ++node) missing -= IsFreeByItself(node, k);
  return missing;
}

Limits Nodes::LimitsOf(int n, int k) const {
  const NodeView& node = problem_.snapshot.nodes[n];
  const Resources& wanted = problem_.per_node;
  const Resources& free = free_[k][n];
  const int64_t within = problem_.deadlines[k].within.count();
  Limits limits;
  limits.wanted = wanted_[n] && !IsFreeByItself(n, k);
  limits.limit[kSlots] = std::max(0, wanted.slots - free.slots);
  limits.limit[kMemory] = std::max<int64_t>(0, wanted.memory.value - free.memory.value);
  limits.limit[kGpus] = std::max(0, wanted.gpus - free.gpus);
  limits.limit[kFrozen] = std::max<int64_t>(0, node.ram_available.value - wanted.memory.value);
  limits.limit[kLocalDisk] = node.local_disk_free.value;
  limits.limit[kLocalWriting] = limits.limit[kSharedWriting] = within;
  limits.limit[kEarlyWriting] = (problem_.arrival - problem_.snapshot.now).count();
  return limits;
}

void Nodes::AddTo(std::vector<Load>& loads, const Victim& victim, int sign) const {
  const Candidate& candidate = problem_.candidates[victim.candidate];
  for (size_t rank = 0; rank < candidate.job->nodes.size(); ++rank) {
    const int node = of_[victim.candidate][rank];
    if (node < 0) continue;
    const Load load =
        LoadOf(candidate.options[victim.option], *candidate.job, rank, problem_.deadlines[victim.by].within);
    for (int q = 0; q < kQuantities; ++q) loads[node][q] += sign * load[q];
  }
}

namespace {

// Nodes of the victim's that are freed by the first deadline.
int FreedOf(const Nodes& nodes, const Victim& victim, const std::vector<Load>& loads) {
  const std::vector<int> its = NodesOf(nodes.Of(victim.candidate));
  return static_cast<int>(std::count_if(
      its.begin(), its.end(), [&](int node) { return IsFreed(nodes.LimitsOf(node, 0), loads[node]); }));
}

}  // namespace

std::vector<Victim> Trimmed(const Problem& problem, std::vector<Victim> victims) {
  const Nodes nodes(problem);
  if (nodes.deadlines() > 1) return victims;
  const auto cost = [&](const Victim& v) {
    return problem.candidates[v.candidate].options[v.option].cost_ms;
  };
  std::vector<Victim> order = victims;
  std::sort(order.begin(), order.end(), [&](const Victim& a, const Victim& b) {
    return std::pair(-cost(a), a.candidate) < std::pair(-cost(b), b.candidate);
  });
  std::vector<Load> loads(nodes.size());
  for (const Victim& victim : victims) nodes.AddTo(loads, victim, +1);
  int missing = nodes.Missing(0);
  for (int n = 0; n < nodes.size(); ++n) missing -= IsFreed(nodes.LimitsOf(n, 0), loads[n]);
  for (const Victim& victim : order) {
    const int freed = FreedOf(nodes, victim, loads);
    nodes.AddTo(loads, victim, -1);
    const int lost = freed - FreedOf(nodes, victim, loads);
    if (missing + lost > 0) {
      nodes.AddTo(loads, victim, +1);
      continue;
    }
    missing += lost;
    std::erase_if(victims, [&](const Victim& v) { return v.candidate == victim.candidate; });
  }
  return victims;
}

std::vector<std::vector<int>> FreeNodes(const Problem& problem, const std::vector<Victim>& victims) {
  const Nodes nodes(problem);
  std::vector<Load> loads(nodes.size());
  std::vector<std::vector<int>> free(nodes.deadlines());
  for (int k = 0; k < nodes.deadlines(); ++k) {
    for (const Victim& victim : victims) {
      if (victim.by == k) nodes.AddTo(loads, victim, +1);
    }
    for (int n = 0; n < nodes.size(); ++n) {
      if (nodes.IsFreeByItself(n, k) || IsFreed(nodes.LimitsOf(n, k), loads[n])) free[k].push_back(n);
    }
  }
  return free;
}

bool LeavesForUs(const Problem& problem, const JobView& job) {
  return job.releasing_for == JobId() || std::find(problem.requests.begin(), problem.requests.end(),
                                                   job.releasing_for) != problem.requests.end();
}

std::optional<Time> LeavesAt(const Problem& problem, const JobView& job) {
  if (!job.releasing_at) return job.ends_at;
  return LeavesForUs(problem, job) ? job.releasing_at : std::nullopt;
}

bool LeavesBy(const Problem& problem, const JobView& job, Duration within) {
  const std::optional<Time> at = LeavesAt(problem, job);
  return at && *at - problem.arrival <= within;
}

Resources GivesBack(const JobView& job) {
  return job.releasing_to_ram ? FreedByFreezing(job.per_node) : job.per_node;
}

bool IsEligible(const NodeView& node, const Resources& per_node) {
  return node.usable && node.capacity.Covers(per_node);
}

std::vector<int> SpareNodes(const Snapshot& snapshot, const Resources& wanted, const JobView& job) {
  std::vector<int> spare;
  for (size_t n = 0; n < snapshot.nodes.size(); ++n) {
    const NodeView& node = snapshot.nodes[n];
    if (node.usable && !IsEligible(node, wanted) && node.free.Covers(job.per_node))
      spare.push_back(static_cast<int>(n));
  }
  return spare;
}

}  // namespace siding
