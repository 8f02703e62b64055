#include "planner/greedy.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "planner/core.h"

namespace siding {
namespace {

// Nodes that are looked at for the next to be cleared.
constexpr size_t kLookahead = 8;

const Option& OptionOf(const Problem& problem, const Alternative& alternative) {
  return problem.candidates[alternative.victim.candidate].options[alternative.victim.option];
}

struct Preference {
  std::function<bool(const Alternative&)> allowed;  // the ways of leaving that may be used
  bool thrifty = false;  // those that use least of what is short come before those that cost least
};

// All ways; then without those that one of the things that can be short forbids; then all, thriftily.
std::vector<Preference> Preferences(const Problem& problem) {
  const auto frozen = [&](const Alternative& alternative) {
    return OptionOf(problem, alternative).stays_in_ram;
  };
  const auto shared = [&](const Alternative& alternative) {
    return OptionOf(problem, alternative).shared_bytes > Bytes{0};
  };
  const auto stored = [&](const Alternative& alternative) {
    return !OptionOf(problem, alternative).by_rank.empty();
  };
  return {{[](const Alternative&) { return true; }},
          {[=](const Alternative& alternative) { return !frozen(alternative); }},
          {[=](const Alternative& alternative) { return !frozen(alternative) && !shared(alternative); }},
          {[=](const Alternative& alternative) { return !frozen(alternative) && !stored(alternative); }},
          {[](const Alternative&) { return true; }, true}};
}

// Who has left so far, and what that does to the nodes.
class Clearing {
 public:
  Clearing(const Problem& problem, const Component& component, const std::vector<int>& demand,
           const std::vector<double>& prices, const Preference& preference, Effort& effort)
      : problem_(problem),
        component_(component),
        demand_(demand),
        prices_(prices),
        effort_(effort),
        deadlines_(static_cast<int>(problem.deadlines.size())),
        itself_(component.nodes.size()),
        loads_(component.limits.size()),
        left_(component.members.size(), nullptr),
        on_(component.nodes.size()) {
    std::iota(itself_.begin(), itself_.end(), 0);
    for (const Member& member : component.members) {
      std::vector<const Alternative*>& its = alternatives_.emplace_back();
      for (const Alternative& alternative : member.alternatives) {
        if (preference.allowed(alternative)) its.push_back(&alternative);
      }
      std::stable_sort(its.begin(), its.end(), [&](const Alternative* a, const Alternative* b) {
        return std::pair(preference.thrifty ? UseOf(*a) : 0, a->charge.cost) <
               std::pair(preference.thrifty ? UseOf(*b) : 0, b->charge.cost);
      });
      nodes_.push_back(NodesOf(member.nodes));
      for (int node : nodes_.back()) {
        if (!its.empty()) on_[node].push_back(static_cast<int>(nodes_.size()) - 1);
      }
    }
  }

  // Calls `freed` after each node that became free, until it returns false.
  template <typename Freed>
  void Run(Freed freed) {
    std::vector<int> left = CheapestFirst();
    while (true) {
      const Departures cheapest = TakeCheapest(left);
      if (cheapest.empty()) return;
      for (const auto& [m, alternative] : cheapest) Leave(m, *alternative);
      if (!freed()) return;
    }
  }

  // Puts back those without which the demand is met as well, the most expensive first.
  void Trim() {
    std::vector<int> order;
    for (size_t m = 0; m < left_.size(); ++m) {
      if (left_[m] != nullptr) order.push_back(static_cast<int>(m));
    }
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return CostOf(a) > CostOf(b); });
    for (int m : order) {
      const Alternative* const alternative = left_[m];
      Return(m);
      if (!Meets()) Leave(m, *alternative);
    }
  }

  bool Meets() const {
    for (size_t r = 0; r < demand_.size(); ++r) {
      if (cover_.amounts[r] < demand_[r]) return false;
    }
    return true;
  }

  FrontierChoice Choice() const {
    FrontierChoice choice{cover_, {}};
    for (const Alternative* alternative : left_) {
      if (alternative != nullptr) choice.victims.push_back(alternative->victim);
    }
    std::sort(choice.victims.begin(), choice.victims.end(),
              [](const Victim& a, const Victim& b) { return a.candidate < b.candidate; });
    return choice;
  }

 private:
  int64_t CostOf(int member) const { return left_[member]->charge.cost; }

  // Of all that is short.
  static int64_t UseOf(const Alternative& alternative) {
    return -std::accumulate(alternative.charge.amounts.begin(), alternative.charge.amounts.end(), int64_t{0});
  }

  std::vector<int> CheapestFirst() const {
    std::vector<int> order;
    std::vector<double> costs = prices_;
    for (size_t node = 0; node < prices_.size(); ++node) {
      if (!std::isfinite(prices_[node])) continue;
      order.push_back(static_cast<int>(node));
      costs[node] *= AloneByPrice(static_cast<int>(node));
    }
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return costs[a] < costs[b]; });
    return order;
  }

  // How many times its price it costs to clear it alone: the price has only its part of what a job on several
  // nodes loses.
  double AloneByPrice(int node) const {
    double whole = 0, parts = 0;
    for (int m : on_[node]) {
      const auto cost = static_cast<double>(alternatives_[m].front()->charge.cost);
      whole += cost;
      parts += cost / static_cast<double>(nodes_[m].size());
    }
    return parts > 0 ? whole / parts : 1;
  }

  using Departures = std::vector<std::pair<int, const Alternative*>>;
  static int64_t Cost(const Departures& departures) {
    int64_t cost = 0;
    for (const auto& [m, alternative] : departures) cost += alternative->charge.cost;
    return cost;
  }

  // Of the first few nodes the one that is cheapest to clear by what it really takes now, and who leaves
  // then. Nodes that are free by now, or cannot be freed any more, are taken out as well. None: nothing is
  // left.
  Departures TakeCheapest(std::vector<int>& nodes) {
    Departures cheapest;
    size_t at = 0;
    for (size_t i = 0; i < nodes.size() && i < kLookahead;) {
      Departures departures = WaysToClear(nodes[i]);
      if (departures.empty()) {
        nodes.erase(nodes.begin() + static_cast<long>(i));
        continue;
      }
      if (cheapest.empty() || Cost(departures) < Cost(cheapest)) {
        cheapest = std::move(departures);
        at = i;
      }
      ++i;
    }
    if (!cheapest.empty()) nodes.erase(nodes.begin() + static_cast<long>(at));
    return cheapest;
  }

  bool IsWantedNoMore(int node) const {
    for (int at = node * deadlines_; at < (node + 1) * deadlines_; ++at) {
      if (component_.limits[at].wanted && !IsFreed(component_.limits[at], loads_[at])) return false;
    }
    return true;
  }

  // Members leave one after another until it is free, each in the cheapest way that is still possible. First
  // the cheapest, or those who lose most by being late: what cannot be done by all is best used for them. The
  // cheaper of the two; empty if it is free already, or does not become so.
  Departures WaysToClear(int node) {
    if (IsWantedNoMore(node)) return {};
    std::vector<int> members;
    for (int m : on_[node]) {
      if (left_[m] == nullptr) members.push_back(m);
    }
    const auto cost = [&](int m) { return alternatives_[m].front()->charge.cost; };
    std::stable_sort(members.begin(), members.end(), [&](int a, int b) { return cost(a) < cost(b); });
    Departures cheapest_first = TryInOrder(node, members);
    std::map<int, double> regret;
    for (int m : members) regret[m] = Regret(node, m);
    std::stable_sort(members.begin(), members.end(), [&](int a, int b) { return regret[a] > regret[b]; });
    Departures regretted_first = TryInOrder(node, members);
    if (regretted_first.empty() || (!cheapest_first.empty() && Cost(cheapest_first) < Cost(regretted_first)))
      return cheapest_first;
    return regretted_first;
  }

  // The jobs that would leave; none if the node does not become free by that.
  Departures TryInOrder(int node, const std::vector<int>& members) {
    const int freed_before = FreedAt(node);
    Departures gone;
    for (int m : members) {
      if (LeaveIfPossible(m)) gone.emplace_back(m, left_[m]);
      if (IsWantedNoMore(node)) break;
    }
    const bool is_freed = FreedAt(node) > freed_before;
    for (const auto& [m, alternative] : gone) Return(m);
    return is_freed ? gone : Departures{};
  }

  // What it costs more to leave in the next way than in the cheapest, for each part that this one takes of
  // what the node can bear.
  double Regret(int node, int m) const {
    const std::vector<const Alternative*>& alternatives = alternatives_[m];
    if (alternatives.size() == 1) return std::numeric_limits<double>::infinity();
    const double first = TakenBy(node, m, *alternatives[0]);
    double least = std::numeric_limits<double>::infinity();
    for (size_t w = 1; w < alternatives.size(); ++w) {
      const double saved = first - TakenBy(node, m, *alternatives[w]);
      if (saved > 0)
        least = std::min(
            least, static_cast<double>(alternatives[w]->charge.cost - alternatives[0]->charge.cost) / saved);
    }
    return least;
  }

  // The largest share of anything.
  double TakenBy(int node, int m, const Alternative& alternative) const {
    const Member& member = component_.members[m];
    const Limits& limits = component_.limits[node * deadlines_ + deadlines_ - 1];
    double share = 0;
    for (size_t rank = 0; rank < member.nodes.size(); ++rank) {
      if (member.nodes[rank] != node) continue;
      const Load load = LoadOf(problem_, alternative, rank);
      for (int q = kGiven; q < kQuantities; ++q) {
        if (load[q] > 0)
          share = std::max(share, static_cast<double>(load[q]) /
                                      static_cast<double>(std::max<int64_t>(1, limits.limit[q])));
      }
    }
    return share;
  }

  int FreedAt(int node) const {
    int freed = 0;
    for (int at = node * deadlines_; at < (node + 1) * deadlines_; ++at)
      freed += IsFreed(component_.limits[at], loads_[at]);
    return freed;
  }

  // By the cheapest of the ways that everything bears.
  bool LeaveIfPossible(int m) {
    return std::any_of(alternatives_[m].begin(), alternatives_[m].end(), [&](const Alternative* alternative) {
      --effort_.left;
      CoverChoice total = cover_;
      if (!Charge(*alternative, demand_, deadlines_, total)) return false;
      Leave(m, *alternative);
      if (IsBearable(nodes_[m])) return true;
      Return(m);
      return false;
    });
  }

  void Leave(int m, const Alternative& alternative) {
    Charge(alternative, demand_, deadlines_, cover_);
    Change(m, alternative, +1);
    left_[m] = &alternative;
  }
  void Return(int m) {
    const Alternative& alternative = *left_[m];
    cover_.cost -= alternative.charge.cost;
    for (int r = 0; r < kMostRows; ++r) cover_.amounts[r] -= alternative.charge.amounts[r];
    Change(m, alternative, -1);
    left_[m] = nullptr;
  }
  void Change(int m, const Alternative& alternative, int sign) {
    CountFreed(nodes_[m], -1);
    AddLoads(problem_, component_.members[m], alternative, itself_, sign, loads_);
    CountFreed(nodes_[m], +1);
  }

  bool IsBearable(const std::vector<int>& nodes) const {
    for (int node : nodes) {
      for (int at = node * deadlines_; at < (node + 1) * deadlines_; ++at) {
        for (int q = kFrozen + 1; q < kQuantities; ++q) {
          if (loads_[at][q] > component_.limits[at].limit[q]) return false;
        }
      }
    }
    return true;
  }

  void CountFreed(const std::vector<int>& nodes, int sign) {
    for (int node : nodes) {
      for (int k = 0; k < deadlines_; ++k) {
        const int at = node * deadlines_ + k;
        if (IsFreed(component_.limits[at], loads_[at])) cover_.amounts[k] += sign;
      }
    }
  }

  const Problem& problem_;
  const Component& component_;
  const std::vector<int>& demand_;
  const std::vector<double>& prices_;
  Effort& effort_;
  const int deadlines_;
  std::vector<int> itself_;                                    // by node: where its loads stand
  std::vector<std::vector<const Alternative*>> alternatives_;  // by member, those allowed, the cheapest first
  std::vector<std::vector<int>> nodes_;                        // by member
  std::vector<Load> loads_;                                    // node * deadlines + deadline
  std::vector<const Alternative*> left_;                       // by member; nullptr: it stays
  std::vector<std::vector<int>> on_;                           // by node: members that may leave
  CoverChoice cover_;
};

}  // namespace

std::vector<FrontierChoice> ClearInTurn(const Problem& problem, const Component& component,
                                        const std::vector<int>& demand, size_t most, Effort& effort) {
  std::vector<FrontierChoice> choices;
  const std::vector<double> prices = ClearingPrices(problem, component);
  for (const Preference& preference : Preferences(problem)) {
    Clearing clearing(problem, component, demand, prices, preference, effort);
    size_t made = 0;
    clearing.Run([&] {
      if (made++ < most) choices.push_back(clearing.Choice());
      return !clearing.Meets();
    });
    if (made > most) choices.push_back(clearing.Choice());
  }
  return choices;
}

std::optional<FrontierChoice> ClearEnough(const Problem& problem, const Component& component,
                                          const std::vector<int>& demand, const std::vector<double>& prices,
                                          bool any, Effort& effort) {
  std::optional<FrontierChoice> best;
  for (const Preference& preference : Preferences(problem)) {
    Clearing clearing(problem, component, demand, prices, preference, effort);
    if (!clearing.Meets()) clearing.Run([&] { return !clearing.Meets(); });
    if (!clearing.Meets()) continue;
    clearing.Trim();
    FrontierChoice choice = clearing.Choice();
    if (!best || choice.cover.cost < best->cover.cost) best = std::move(choice);
    if (any) break;
  }
  return best;
}

}  // namespace siding
