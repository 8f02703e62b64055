#include "planner/frontier.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

namespace siding {
namespace {

constexpr size_t kMostChoices = 254;  // what SolveKnapsack takes of one group

// A job's part in its component: where its ranks are and what may be done with it in time.
struct Member {
  int candidate = 0;
  std::vector<int> nodes;    // by rank; -1: not eligible, so of no use
  std::vector<int> options;  // usable ones
};

struct Component {
  std::vector<Member> members;
  std::vector<int> nodes;
};

// What leaving jobs give back to a node, and what they leave there.
struct Returned {
  Resources resources{0, Bytes{0}, 0};
  Bytes frozen;
  Bytes local_disk;
};

class FrontierMaker {
 public:
  FrontierMaker(const Snapshot& snapshot, const Request& request, const std::vector<Candidate>& candidates,
                Duration within, const Budget& budget)
      : snapshot_(snapshot), request_(request), candidates_(candidates), within_(within), budget_(budget) {
    for (size_t i = 0; i < snapshot.nodes.size(); ++i) index_[snapshot.nodes[i].id] = static_cast<int>(i);
  }

  Frontier Make() {
    FreeByThemselves();
    Frontier frontier;
    for (size_t i = 0; i < snapshot_.nodes.size(); ++i) {
      if (eligible_[i] && free_[i].Covers(request_.per_node))
        frontier.free_nodes.push_back(static_cast<int>(i));
    }
    for (Component& component : Components()) {
      frontier.exact &= Combinations(component) <= kCombinations;
      Thin(component);
      std::vector<FrontierChoice> choices =
          Combinations(component) <= kCombinations ? Enumerate(component) : Chain(component);
      if (!choices.empty()) frontier.groups.push_back(std::move(choices));
    }
    return frontier;
  }

 private:
  void FreeByThemselves() {
    for (const NodeView& node : snapshot_.nodes) {
      free_.push_back(node.free);
      eligible_.push_back(IsEligible(node, request_));
    }
    for (const JobView& job : snapshot_.jobs) {
      if (!job.releasing_at || *job.releasing_at - snapshot_.now > within_) continue;
      if (job.releasing_for != JobId() && job.releasing_for != request_.id) continue;
      for (const NodeId& node : job.nodes) {
        if (auto it = index_.find(node); it != index_.end()) free_[it->second] += job.per_node;
      }
    }
  }

  std::vector<Component> Components() const {
    std::vector<Member> members;
    for (size_t c = 0; c < candidates_.size(); ++c) {
      Member member;
      member.candidate = static_cast<int>(c);
      bool useful = false;
      for (const NodeId& node : candidates_[c].job->nodes) {
        auto it = index_.find(node);
        const int i = it != index_.end() && eligible_[it->second] ? it->second : -1;
        member.nodes.push_back(i);
        useful |= i >= 0 && !free_[i].Covers(request_.per_node);
      }
      for (size_t o = 0; o < candidates_[c].options.size(); ++o) {
        if (Usable(candidates_[c].options[o])) member.options.push_back(static_cast<int>(o));
      }
      if (useful && !member.options.empty()) members.push_back(std::move(member));
    }
    return Group(std::move(members));
  }

  bool Usable(const Option& option) const {
    return option.release <= within_ && budget_.StepsFor(option.shared_bytes) <= budget_.steps;
  }

  // Union-find over the nodes that members share.
  static std::vector<Component> Group(std::vector<Member> members) {
    std::vector<int> parent(members.size());
    std::iota(parent.begin(), parent.end(), 0);
    const std::function<int(int)> root = [&](int i) {
      while (parent[i] != i) i = parent[i] = parent[parent[i]];
      return i;
    };
    std::map<int, int> first_on;
    for (size_t m = 0; m < members.size(); ++m) {
      for (int node : members[m].nodes) {
        if (node < 0) continue;
        auto [it, fresh] = first_on.emplace(node, static_cast<int>(m));
        if (!fresh) parent[root(static_cast<int>(m))] = root(it->second);
      }
    }
    std::map<int, Component> by_root;
    for (size_t m = 0; m < members.size(); ++m) {
      by_root[root(static_cast<int>(m))].members.push_back(std::move(members[m]));
    }
    std::vector<Component> components;
    for (auto& [r, component] : by_root) {
      std::set<int> nodes;
      for (const Member& member : component.members) nodes.insert(member.nodes.begin(), member.nodes.end());
      nodes.erase(-1);
      component.nodes.assign(nodes.begin(), nodes.end());
      components.push_back(std::move(component));
    }
    return components;
  }

  static int64_t Combinations(const Component& component) {
    int64_t product = 1;
    for (const Member& member : component.members) {
      product *= static_cast<int64_t>(member.options.size()) + 1;
      if (product > kCombinations) return product;
    }
    return product;
  }

  const Option& OptionOf(const Member& member, int option) const {
    return candidates_[member.candidate].options[option];
  }

  void Thin(Component& component) const {
    if (Combinations(component) <= kCombinations) return;
    for (Member& member : component.members) {
      std::map<bool, int> cheapest;  // by use of shared storage
      for (int option : member.options) {
        auto [it, fresh] = cheapest.emplace(OptionOf(member, option).shared_bytes > Bytes{0}, option);
        if (!fresh && OptionOf(member, option).loss_ms < OptionOf(member, it->second).loss_ms)
          it->second = option;
      }
      member.options.clear();
      for (const auto& [shared, option] : cheapest) member.options.push_back(option);
    }
  }

  void Leave(const Member& member, int option_index, int sign, std::map<int, Returned>& returned) const {
    const Option& option = OptionOf(member, option_index);
    const JobView& job = *candidates_[member.candidate].job;
    for (size_t rank = 0; rank < member.nodes.size(); ++rank) {
      if (member.nodes[rank] < 0) continue;
      Returned& r = returned[member.nodes[rank]];
      r.resources.slots += sign * job.per_node.slots;
      if (option.stays_in_ram) {
        r.frozen.value += sign * job.memory[rank].value;
      } else {
        r.resources.memory.value += sign * job.per_node.memory.value;
        r.resources.gpus += sign * job.per_node.gpus;
      }
      if (option.to_local_disk) r.local_disk.value += sign * job.memory[rank].value;
    }
  }

  // The choice that these victims make; nodes empty if they free nothing or do not fit.
  FrontierChoice Weigh(const Component& component, const std::vector<ChosenOption>& victims,
                       const std::map<int, Returned>& returned) const {
    FrontierChoice choice;
    for (int n : component.nodes) {
      const NodeView& node = snapshot_.nodes[n];
      auto it = returned.find(n);
      if (it == returned.end()) continue;
      if (it->second.local_disk > node.local_disk_free) return {};
      Resources free = free_[n];
      if (free.Covers(request_.per_node)) continue;  // it is free anyway
      free += it->second.resources;
      const bool ram_fits =
          it->second.frozen == Bytes{0} || it->second.frozen + request_.per_node.memory <= node.ram_available;
      if (ram_fits && free.Covers(request_.per_node)) choice.nodes.push_back(n);
    }
    for (const ChosenOption& victim : victims) {
      const Option& option = candidates_[victim.candidate].options[victim.option];
      choice.steps += budget_.StepsFor(option.shared_bytes);
      choice.loss_ms += option.loss_ms;
    }
    if (choice.steps > budget_.steps) return {};
    choice.victims = victims;
    return choice;
  }

  std::vector<FrontierChoice> Enumerate(const Component& component) const {
    std::vector<FrontierChoice> kept;
    std::vector<ChosenOption> victims;
    std::map<int, Returned> returned;
    const std::function<void(size_t)> descend = [&](size_t m) {
      if (m == component.members.size()) {
        FrontierChoice choice = Weigh(component, victims, returned);
        if (!choice.nodes.empty()) Keep(kept, std::move(choice));
        return;
      }
      const Member& member = component.members[m];
      descend(m + 1);
      for (int option : member.options) {
        Leave(member, option, +1, returned);
        victims.push_back({member.candidate, option});
        descend(m + 1);
        victims.pop_back();
        Leave(member, option, -1, returned);
      }
    };
    descend(0);
    if (kept.size() > kMostChoices) {
      std::stable_sort(kept.begin(), kept.end(),
                       [](const auto& a, const auto& b) { return a.loss_ms < b.loss_ms; });
      kept.resize(kMostChoices);
    }
    return kept;
  }

  // a is at least as good as b in everything.
  static bool Beats(const FrontierChoice& a, const FrontierChoice& b) {
    return a.nodes.size() >= b.nodes.size() && a.steps <= b.steps &&
           std::pair(a.loss_ms, a.victims.size()) <= std::pair(b.loss_ms, b.victims.size());
  }

  static void Keep(std::vector<FrontierChoice>& kept, FrontierChoice choice) {
    for (const FrontierChoice& other : kept) {
      if (Beats(other, choice)) return;
    }
    std::erase_if(kept, [&](const FrontierChoice& other) { return Beats(choice, other); });
    kept.push_back(std::move(choice));
  }

  // For components too large to enumerate: clear the node that is cheapest to clear, then the next.
  std::vector<FrontierChoice> Chain(const Component& component) const {
    std::vector<FrontierChoice> kept;
    std::vector<ChosenOption> victims;
    std::map<int, Returned> returned;
    std::set<int> gone;  // members
    for (;;) {
      int64_t best_cost = -1;
      std::vector<int> best;
      for (int node : component.nodes) {
        std::vector<int> on_it;
        int64_t cost = 0;
        for (size_t m = 0; m < component.members.size(); ++m) {
          const Member& member = component.members[m];
          if (gone.contains(static_cast<int>(m)) ||
              std::find(member.nodes.begin(), member.nodes.end(), node) == member.nodes.end()) {
            continue;
          }
          on_it.push_back(static_cast<int>(m));
          cost += OptionOf(member, member.options.front()).loss_ms;
        }
        if (!on_it.empty() && (best_cost < 0 || cost < best_cost)) {
          best_cost = cost;
          best = on_it;
        }
      }
      if (best.empty()) break;
      for (int m : best) {
        const Member& member = component.members[m];
        gone.insert(m);
        victims.push_back({member.candidate, member.options.front()});
        Leave(member, member.options.front(), +1, returned);
      }
      FrontierChoice choice = Weigh(component, victims, returned);
      if (!choice.nodes.empty()) Keep(kept, std::move(choice));
      if (kept.size() >= kMostChoices) break;
    }
    return kept;
  }

  const Snapshot& snapshot_;
  const Request& request_;
  const std::vector<Candidate>& candidates_;
  const Duration within_;
  const Budget budget_;
  std::map<NodeId, int> index_;
  std::vector<Resources> free_;
  std::vector<bool> eligible_;
};

}  // namespace

int Budget::StepsFor(Bytes bytes) const {
  if (bytes == Bytes{0}) return 0;
  if (bytes_per_step <= 0) return steps + 1;
  const double needed = std::ceil(static_cast<double>(bytes.value) / bytes_per_step);
  return needed > steps ? steps + 1 : static_cast<int>(needed);
}

bool IsEligible(const NodeView& node, const Request& request) {
  return node.usable && node.capacity.Covers(request.per_node);
}

Frontier MakeFrontier(const Snapshot& snapshot, const Request& request,
                      const std::vector<Candidate>& candidates, Duration within, const Budget& budget) {
  return FrontierMaker(snapshot, request, candidates, within, budget).Make();
}

}  // namespace siding
