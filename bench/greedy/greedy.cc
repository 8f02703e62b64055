#include "bench/greedy/greedy.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "planner/nodes.h"
#include "planner/options.h"
#include "planner/write_plans.h"

namespace siding {
namespace {

// What may be written to shared storage is one step, which is never rounded here.
Budget WholeBudget(double bytes) { return {1, std::max(0.0, bytes)}; }

Problem MakeProblem(const Snapshot& snapshot, const std::vector<Request>& requests, const Policy& policy,
                    const std::vector<Candidate>& candidates) {
  Problem problem{snapshot, candidates, requests.front().per_node, {}, snapshot.now, {}, WholeBudget(0)};
  int nodes = 0;
  for (const Request& request : requests) {
    const Duration within = std::max(Duration(0), request.start_by - policy.margin - snapshot.now);
    const double bytes = snapshot.shared.bytes_per_second * ToSeconds(within) -
                         static_cast<double>(snapshot.shared.in_flight.value);
    problem.requests.push_back(request.id);
    problem.deadlines.push_back({within, nodes += request.nodes, WholeBudget(bytes)});
  }
  return problem;
}

class Greedy {
 public:
  // `thrifty`: ways that write less come before those that cost less.
  Greedy(const Problem& problem, bool thrifty)
      : problem_(problem),
        nodes_(problem),
        ways_(problem.candidates.size()),
        on_(nodes_.size()),
        loads_(problem.deadlines.size(), std::vector<Load>(nodes_.size())),
        shared_(problem.deadlines.size(), 0),
        left_(problem.candidates.size(), {-1, -1, -1}) {
    for (int k = 0; k < deadlines(); ++k) missing_.push_back(nodes_.Missing(k));
    for (int c = 0; c < static_cast<int>(ways_.size()); ++c) AddWays(c, thrifty);
    for (std::vector<int>& jobs : on_) {
      std::stable_sort(jobs.begin(), jobs.end(), [&](int a, int b) {
        return OptionOf(a, ways_[a].front()).cost_ms < OptionOf(b, ways_[b].front()).cost_ms;
      });
    }
  }

  bool Choose() {
    for (int k = 0; k < deadlines(); ++k) {
      Queue queue;
      for (int node = 0; node < nodes_.size(); ++node) Enqueue(node, k, queue);
      while (missing_[k] > 0 && !queue.empty()) {
        const auto [price, node] = queue.top();
        queue.pop();
        // What others have taken since may have made it dearer.
        const Departures departures = WaysToClear(node, k);
        if (departures.empty()) continue;
        if (!queue.empty() && Price(departures) > queue.top().first) {
          queue.emplace(Price(departures), node);
        } else {
          for (const Victim& victim : departures) Leave(victim);
        }
      }
      if (missing_[k] > 0) return false;
    }
    PutBack();
    return true;
  }

  std::vector<Victim> Victims() const {
    std::vector<Victim> victims;
    std::copy_if(left_.begin(), left_.end(), std::back_inserter(victims),
                 [](const Victim& victim) { return victim.option >= 0; });
    return victims;
  }

 private:
  int deadlines() const { return nodes_.deadlines(); }
  const Option& OptionOf(int c, int o) const { return problem_.candidates[c].options[o]; }
  bool HasLeft(int c) const { return left_[c].option >= 0; }

  void AddWays(int c, bool thrifty) {
    const Candidate& candidate = problem_.candidates[c];
    const Duration within = problem_.deadlines.back().within;
    if (LeavesBy(problem_, *candidate.job, within)) return;
    for (size_t o = 0; o < candidate.options.size(); ++o) {
      const Option& option = candidate.options[o];
      if (option.early || option.migrates || option.release > within) continue;
      ways_[c].push_back(static_cast<int>(o));
      if (candidate.strict) break;
    }
    std::stable_sort(ways_[c].begin(), ways_[c].end(), [&](int a, int b) {
      const auto key = [&](const Option& o) {
        return std::pair(thrifty ? o.shared_bytes.value : 0, o.cost_ms);
      };
      return key(OptionOf(c, a)) < key(OptionOf(c, b));
    });
    if (ways_[c].empty()) return;
    for (int node : NodesOf(nodes_.Of(c))) on_[node].push_back(c);
  }

  // Nodes by price, the cheapest first, then in their order.
  using Queue =
      std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>>;
  using Departures = std::vector<Victim>;

  void Enqueue(int node, int k, Queue& queue) {
    const Departures departures = WaysToClear(node, k);
    if (!departures.empty()) queue.emplace(Price(departures), node);
  }

  // A job's cost is shared among its nodes.
  double Price(const Departures& departures) const {
    double price = 0;
    for (const Victim& v : departures) {
      price += static_cast<double>(OptionOf(v.candidate, v.option).cost_ms) /
               static_cast<double>(problem_.candidates[v.candidate].job->nodes.size());
    }
    return price;
  }

  bool IsFree(int node, int k) const { return IsFreed(nodes_.LimitsOf(node, k), loads_[k][node]); }

  // Jobs leave until the node is free, each by its best way that is possible. Empty: it is free, or does not
  // become so.
  Departures WaysToClear(int node, int k) {
    Departures departures;
    if (!nodes_.LimitsOf(node, k).wanted || IsFree(node, k)) return departures;
    for (int c : on_[node]) {
      if (!HasLeft(c) && LeaveIfPossible(c, k)) departures.push_back(left_[c]);
      if (IsFree(node, k)) break;
    }
    const bool is_free = IsFree(node, k);
    for (const Victim& victim : departures) Return(victim.candidate);
    return is_free ? departures : Departures();
  }

  bool LeaveIfPossible(int c, int k) {
    return std::any_of(ways_[c].begin(), ways_[c].end(), [&](int o) {
      if (OptionOf(c, o).release > problem_.deadlines[k].within) return false;
      Leave({c, o, k});
      if (IsBearable(c)) return true;
      Return(c);
      return false;
    });
  }

  // The most expensive first.
  void PutBack() {
    std::vector<Victim> victims = Victims();
    std::stable_sort(victims.begin(), victims.end(), [&](const Victim& a, const Victim& b) {
      return OptionOf(a.candidate, a.option).cost_ms > OptionOf(b.candidate, b.option).cost_ms;
    });
    for (const Victim& victim : victims) {
      Return(victim.candidate);
      if (std::any_of(missing_.begin(), missing_.end(), [](int missing) { return missing > 0; }))
        Leave(victim);
    }
  }

  void Leave(const Victim& victim) {
    left_[victim.candidate] = victim;
    Change(victim, +1);
  }
  void Return(int c) { Change(std::exchange(left_[c], {-1, -1, -1}), -1); }

  void Change(const Victim& victim, int sign) {
    const Option& option = OptionOf(victim.candidate, victim.option);
    const std::vector<int> its = NodesOf(nodes_.Of(victim.candidate));
    const int64_t bytes =
        Stretched(option.shared_bytes.value, option.before_writing, problem_.deadlines[victim.by].within);
    for (int k = victim.by; k < deadlines(); ++k) {
      for (int node : its) missing_[k] += IsFree(node, k);
      nodes_.AddTo(loads_[k], victim, sign);
      for (int node : its) missing_[k] -= IsFree(node, k);
      shared_[k] += sign * bytes;
    }
  }

  // What this one's leaving takes is there.
  bool IsBearable(int c) const {
    for (int k = left_[c].by; k < deadlines(); ++k) {
      if (static_cast<double>(shared_[k]) > problem_.deadlines[k].shared.bytes_per_step) return false;
      for (int node : NodesOf(nodes_.Of(c))) {
        const Limits limits = nodes_.LimitsOf(node, k);
        for (int q = limits.wanted ? kFrozen : kFrozen + 1; q < kQuantities; ++q) {
          if (loads_[k][node][q] > limits.limit[q]) return false;
        }
      }
    }
    return true;
  }

  const Problem& problem_;
  const Nodes nodes_;
  std::vector<std::vector<int>> ways_;    // by candidate: options, the best first
  std::vector<std::vector<int>> on_;      // by node: candidates that may leave
  std::vector<std::vector<Load>> loads_;  // by deadline and node
  std::vector<int64_t> shared_;           // by deadline: bytes
  std::vector<int> missing_;              // by deadline: nodes
  std::vector<Victim> left_;              // by candidate; option -1: it stays
};

}  // namespace

std::vector<Plan> MakeGreedyPlans(const Snapshot& snapshot, const std::vector<Request>& requests,
                                  const Policy& policy) {
  const std::vector<Candidate> candidates = MakeCandidates(snapshot, CommonRequest(requests), policy);
  const Problem problem = MakeProblem(snapshot, requests, policy, candidates);
  std::vector<Plan> plans(requests.size());
  for (size_t i = 0; i < plans.size(); ++i) {
    plans[i].request = requests[i].id;
    plans[i].exact = false;
  }
  for (bool thrifty : {false, true}) {
    Greedy greedy(problem, thrifty);
    if (!greedy.Choose()) continue;
    WritePlans(problem, requests, greedy.Victims(), plans);
    break;
  }
  return plans;
}

}  // namespace siding
