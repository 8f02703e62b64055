#include "planner/frontier.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

namespace siding {
namespace {

// Of one component; a component with more undominated choices than this counts as thinned out.
constexpr size_t kMostChoices = 1000;

// A job's part in its component: where its ranks are and what may be done with it in time.
struct Member {
  int candidate = 0;
  std::vector<int> nodes;  // by rank, index into the component's nodes; -1: not eligible, so of no use
  std::vector<Victim> ways;
};

struct Component {
  std::vector<Member> members;
  std::vector<int> nodes;  // indices into the snapshot's, ascending
};

// What leaving jobs give back to a node by some deadline, and what they take there.
struct Returned {
  Resources resources{0, Bytes{0}, 0};
  Bytes frozen;
  Bytes local_disk;
  Duration local_writing{0};  // one after another: they share the node's way to the tier
  Duration shared_writing{0};
};

class FrontierMaker {
 public:
  explicit FrontierMaker(const Problem& problem)
      : problem_(problem),
        snapshot_(problem.snapshot),
        deadlines_(static_cast<int>(problem.deadlines.size())),
        cost_unit_(CostUnit(problem.candidates)) {
    CountSpare();
    index_.reserve(snapshot_.nodes.size());
    for (size_t i = 0; i < snapshot_.nodes.size(); ++i) index_[snapshot_.nodes[i].id] = static_cast<int>(i);
    FreeByThemselves();
  }

  Frontier Make() {
    Frontier frontier;
    frontier.demand = Demand();
    for (Component& component : Components()) {
      frontier.exact &= Combinations(component) <= kCombinations;
      Thin(component);
      std::vector<FrontierChoice> choices =
          Combinations(component) <= kCombinations ? Enumerate(component) : Chain(component);
      if (choices.size() > kMostChoices) {
        frontier.exact = false;
        std::stable_sort(choices.begin(), choices.end(),
                         [](const auto& a, const auto& b) { return a.cover.cost < b.cover.cost; });
        choices.resize(kMostChoices);
      }
      if (!choices.empty()) frontier.groups.push_back(std::move(choices));
    }
    LeaveOutIdleRows(frontier);
    return frontier;
  }

  std::vector<int> FreeIf(const std::vector<Victim>& victims) const {
    const int last = deadlines_ - 1;
    std::vector<Returned> returned(snapshot_.nodes.size());
    for (const Victim& victim : victims) {
      const JobView& job = *problem_.candidates[victim.candidate].job;
      for (size_t rank = 0; rank < job.nodes.size(); ++rank) {
        if (auto it = index_.find(job.nodes[rank]); it != index_.end())
          Give(returned[it->second], OptionOf(victim), job, rank, +1);
      }
    }
    std::vector<int> nodes;
    for (size_t n = 0; n < snapshot_.nodes.size(); ++n) {
      const int node = static_cast<int>(n);
      if (FreeByItself(node, last) || (eligible_[n] && IsFree(node, last, returned[n])))
        nodes.push_back(node);
    }
    return nodes;
  }

 private:
  // ---- rows of the covering problem: nodes and shared storage by deadline, then what is common ----

  static int NodesRow(int k) { return k; }
  int SharedRow(int k) const { return deadlines_ + k; }
  int EarlyRow() const { return 2 * deadlines_; }
  int SpareRow() const { return 2 * deadlines_ + 1; }

  std::vector<int> Demand() const {
    std::vector<int> demand(2 * deadlines_ + 2, 0);
    for (int k = 0; k < deadlines_; ++k) {
      demand[NodesRow(k)] = problem_.deadlines[k].nodes;
      for (size_t n = 0; n < snapshot_.nodes.size(); ++n) {
        demand[NodesRow(k)] -= FreeByItself(static_cast<int>(n), k);
      }
      demand[SharedRow(k)] = -problem_.deadlines[k].shared.steps;
    }
    demand[EarlyRow()] = -problem_.early.steps;
    demand[SpareRow()] = -spare_;
    return demand;
  }

  // What nobody uses cannot bind.
  static void LeaveOutIdleRows(Frontier& frontier) {
    int rows = 0;
    for (int r = 0; r < static_cast<int>(frontier.demand.size()); ++r) {
      bool used = frontier.demand[r] > 0;
      for (const auto& group : frontier.groups) {
        for (const FrontierChoice& choice : group) used |= choice.cover.amounts[r] != 0;
      }
      if (!used) continue;
      frontier.demand[rows] = frontier.demand[r];
      for (auto& group : frontier.groups) {
        for (FrontierChoice& choice : group) choice.cover.amounts[rows] = choice.cover.amounts[r];
      }
      ++rows;
    }
    frontier.demand.resize(rows);
  }

  // How many ranks may migrate in all: as many as the job finds room for that finds least. Whoever migrates
  // within that finds enough, whatever the others take.
  void CountSpare() {
    for (const Candidate& candidate : problem_.candidates) {
      if (std::none_of(candidate.options.begin(), candidate.options.end(),
                       [](const Option& o) { return o.migrates; }))
        continue;
      const JobView& job = *candidate.job;
      auto [it, fresh] = spare_for_.emplace(ShapeOf(job), 0);
      if (fresh) it->second = static_cast<int>(SpareNodes(snapshot_, problem_.per_node, job).size());
      if (MayMigrate(job)) spare_ = spare_ == 0 ? it->second : std::min(spare_, it->second);
    }
  }

  using Shape = std::tuple<int, int64_t, int>;
  static Shape ShapeOf(const JobView& job) {
    return {job.per_node.slots, job.per_node.memory.value, job.per_node.gpus};
  }
  bool MayMigrate(const JobView& job) const {
    return static_cast<int>(job.nodes.size()) <= spare_for_.at(ShapeOf(job));
  }

  // A loss of one node-millisecond, in the unit of the covering problem's costs: large enough for ties to be
  // told apart below it, small enough for the sum over all jobs.
  static int64_t CostUnit(const std::vector<Candidate>& candidates) {
    double sum = 1;
    for (const Candidate& candidate : candidates) {
      int64_t most = 0;
      for (const Option& option : candidate.options) most = std::max(most, option.cost_ms);
      sum += static_cast<double>(most);
    }
    int64_t unit = 1 << 17;
    while (unit > 1 && sum * static_cast<double>(unit) > std::ldexp(1.0, 61)) unit /= 2;
    return unit;
  }

  // ---- nodes ----

  void FreeByThemselves() {
    for (const NodeView& node : snapshot_.nodes) eligible_.push_back(IsEligible(node, problem_.per_node));
    for (const Deadline& deadline : problem_.deadlines) {
      std::vector<Resources>& free = free_.emplace_back();
      for (const NodeView& node : snapshot_.nodes) free.push_back(node.free);
      for (const JobView& job : snapshot_.jobs) {
        if (!job.releasing_at || *job.releasing_at - problem_.arrival > deadline.within) continue;
        const auto& ours = problem_.requests;
        if (job.releasing_for != JobId() &&
            std::find(ours.begin(), ours.end(), job.releasing_for) == ours.end())
          continue;
        for (const NodeId& node : job.nodes) {
          if (auto it = index_.find(node); it != index_.end()) free[it->second] += job.per_node;
        }
      }
    }
  }

  bool FreeByItself(int node, int k) const {
    return eligible_[node] && free_[k][node].Covers(problem_.per_node);
  }

  bool IsFree(int n, int k, const Returned& returned) const {
    const NodeView& node = snapshot_.nodes[n];
    Resources free = free_[k][n];
    free += returned.resources;
    const bool ram_fits =
        returned.frozen == Bytes{0} || returned.frozen + problem_.per_node.memory <= node.ram_available;
    return ram_fits && free.Covers(problem_.per_node);
  }

  // ---- components ----

  std::vector<Component> Components() const {
    std::vector<Member> members;
    for (size_t c = 0; c < problem_.candidates.size(); ++c) {
      if (problem_.candidates[c].options.empty()) continue;
      Member member;
      member.candidate = static_cast<int>(c);
      bool useful = false;
      for (const NodeId& node : problem_.candidates[c].job->nodes) {
        auto it = index_.find(node);
        const int i = it != index_.end() && eligible_[it->second] ? it->second : -1;
        member.nodes.push_back(i);
        useful |= i >= 0 && !FreeByItself(i, 0);
      }
      if (!useful) continue;
      member.ways = Ways(static_cast<int>(c));
      if (!member.ways.empty()) members.push_back(std::move(member));
    }
    return Group(std::move(members));
  }

  // By the first deadline that it can meet; and, if it writes to shared storage, by any later one instead, as
  // it then leaves more of the tier to those who must be early.
  std::vector<Victim> Ways(int c) const {
    const Candidate& candidate = problem_.candidates[c];
    std::vector<Victim> ways;
    for (size_t o = 0; o < candidate.options.size(); ++o) {
      const Option& option = candidate.options[o];
      if (option.migrates && !MayMigrate(*candidate.job)) continue;
      for (int k = 0; k < deadlines_; ++k) {
        const Budget& budget = option.early ? problem_.early : problem_.deadlines[k].shared;
        if (option.release > problem_.deadlines[k].within ||
            budget.StepsFor(option.shared_bytes) > budget.steps)
          continue;
        ways.push_back({c, static_cast<int>(o), k});
        if (option.shared_bytes == Bytes{0} || option.early) break;
      }
      if (candidate.strict && !ways.empty()) break;
    }
    return ways;
  }

  // Union-find over the nodes that members share.
  static std::vector<Component> Group(std::vector<Member> members) {
    std::vector<int> parent(members.size());
    std::iota(parent.begin(), parent.end(), 0);
    const auto root = [&](int i) {
      while (parent[i] != i) i = parent[i] = parent[parent[i]];
      return i;
    };
    std::unordered_map<int, int> first_on;
    for (size_t m = 0; m < members.size(); ++m) {
      for (int node : members[m].nodes) {
        if (node < 0) continue;
        auto [it, fresh] = first_on.emplace(node, static_cast<int>(m));
        if (!fresh) parent[root(static_cast<int>(m))] = root(it->second);
      }
    }
    std::vector<Component> components;
    std::unordered_map<int, size_t> component_of;  // by root
    for (size_t m = 0; m < members.size(); ++m) {
      auto [it, fresh] = component_of.emplace(root(static_cast<int>(m)), components.size());
      if (fresh) components.emplace_back();
      components[it->second].members.push_back(std::move(members[m]));
    }
    for (Component& component : components) NumberNodes(component);
    return components;
  }

  // The members' nodes become indices into the component's.
  static void NumberNodes(Component& component) {
    for (const Member& member : component.members) {
      std::copy_if(member.nodes.begin(), member.nodes.end(), std::back_inserter(component.nodes),
                   [](int n) { return n >= 0; });
    }
    std::sort(component.nodes.begin(), component.nodes.end());
    component.nodes.erase(std::unique(component.nodes.begin(), component.nodes.end()), component.nodes.end());
    for (Member& member : component.members) {
      for (int& node : member.nodes) {
        if (node < 0) continue;
        const auto at = std::lower_bound(component.nodes.begin(), component.nodes.end(), node);
        node = static_cast<int>(at - component.nodes.begin());
      }
    }
  }

  static int64_t Combinations(const Component& component) {
    int64_t product = 1;
    for (const Member& member : component.members) {
      product *= static_cast<int64_t>(member.ways.size()) + 1;
      if (product > kCombinations) return product;
    }
    return product;
  }

  const Option& OptionOf(const Victim& victim) const {
    return problem_.candidates[victim.candidate].options[victim.option];
  }

  void Thin(Component& component) const {
    if (Combinations(component) <= kCombinations) return;
    for (Member& member : component.members) {
      std::map<bool, Victim> cheapest;  // by use of shared storage
      for (const Victim& way : member.ways) {
        auto [it, fresh] = cheapest.emplace(OptionOf(way).shared_bytes > Bytes{0}, way);
        if (!fresh && OptionOf(way).cost_ms < OptionOf(it->second).cost_ms) it->second = way;
      }
      member.ways.clear();
      for (const auto& [shared, way] : cheapest) member.ways.push_back(way);
    }
  }

  // ---- combinations ----

  static void Give(Returned& r, const Option& option, const JobView& job, size_t rank, int sign) {
    r.resources.slots += sign * job.per_node.slots;
    if (option.stays_in_ram) {
      r.frozen.value += sign * job.memory[rank].value;
    } else {
      r.resources.memory.value += sign * job.per_node.memory.value;
      r.resources.gpus += sign * job.per_node.gpus;
    }
    if (option.to_local_disk) r.local_disk.value += sign * job.memory[rank].value;
    if (option.by_rank.empty()) return;
    (option.tier == Tier::kLocal ? r.local_writing : r.shared_writing) += sign * option.by_rank[rank];
  }

  // returned[node * deadlines_ + k]: given back by deadline k.
  void Leave(const Member& member, const Victim& way, int sign, std::vector<Returned>& returned) const {
    const JobView& job = *problem_.candidates[member.candidate].job;
    for (size_t rank = 0; rank < member.nodes.size(); ++rank) {
      if (member.nodes[rank] < 0) continue;
      for (int k = way.by; k < deadlines_; ++k)
        Give(returned[member.nodes[rank] * deadlines_ + k], OptionOf(way), job, rank, sign);
    }
  }

  bool Fits(const NodeView& node, const Returned& returned, int k) const {
    const Duration within = problem_.deadlines[k].within;
    return returned.local_disk <= node.local_disk_free && returned.local_writing <= within &&
           returned.shared_writing <= within;
  }

  // The choice that these victims make; frees nothing if they do not fit.
  FrontierChoice Weigh(const Component& component, const std::vector<Victim>& victims,
                       const std::vector<Returned>& returned) const {
    FrontierChoice choice;
    for (size_t at = 0; at < component.nodes.size(); ++at) {
      const int n = component.nodes[at];
      for (int k = 0; k < deadlines_; ++k) {
        const Returned& r = returned[at * deadlines_ + k];
        if (!Fits(snapshot_.nodes[n], r, k)) return {};
        if (!FreeByItself(n, k) && IsFree(n, k, r)) ++choice.cover.amounts[NodesRow(k)];
      }
    }
    for (const Victim& victim : victims) Charge(victim, choice.cover);
    for (int k = 0; k < deadlines_; ++k) {
      if (-choice.cover.amounts[SharedRow(k)] > problem_.deadlines[k].shared.steps) return {};
    }
    choice.victims = victims;
    return choice;
  }

  // Costs order first by loss, then by the number of victims, each counted 16 and its priority's rank.
  void Charge(const Victim& victim, CoverChoice& cover) const {
    const Option& option = OptionOf(victim);
    const JobView& job = *problem_.candidates[victim.candidate].job;
    cover.cost += option.cost_ms * cost_unit_ + 16 + std::clamp(job.priority, 0, 15);
    if (option.early) {
      cover.amounts[EarlyRow()] -= problem_.early.StepsFor(option.shared_bytes);
    } else {
      for (int k = victim.by; k < deadlines_; ++k)
        cover.amounts[SharedRow(k)] -= problem_.deadlines[k].shared.StepsFor(option.shared_bytes);
    }
    if (option.migrates) cover.amounts[SpareRow()] -= static_cast<int>(job.nodes.size());
  }

  bool FreesSomething(const FrontierChoice& choice) const {
    return std::any_of(choice.cover.amounts.begin(), choice.cover.amounts.begin() + deadlines_,
                       [](int32_t nodes) { return nodes > 0; });
  }

  std::vector<FrontierChoice> Enumerate(const Component& component) const {
    std::vector<FrontierChoice> kept;
    std::vector<Victim> victims;
    std::vector<Returned> returned(component.nodes.size() * deadlines_);
    Descend(component, 0, victims, returned, kept);
    return kept;
  }

  void Descend(const Component& component, size_t m, std::vector<Victim>& victims,
               std::vector<Returned>& returned, std::vector<FrontierChoice>& kept) const {
    if (m == component.members.size()) {
      FrontierChoice choice = Weigh(component, victims, returned);
      if (FreesSomething(choice)) Keep(kept, std::move(choice));
      return;
    }
    const Member& member = component.members[m];
    Descend(component, m + 1, victims, returned, kept);
    for (const Victim& way : member.ways) {
      Leave(member, way, +1, returned);
      victims.push_back(way);
      Descend(component, m + 1, victims, returned, kept);
      victims.pop_back();
      Leave(member, way, -1, returned);
    }
  }

  // a is at least as good as b in everything.
  static bool Beats(const CoverChoice& a, const CoverChoice& b) {
    for (int r = 0; r < kMostRows; ++r) {
      if (a.amounts[r] < b.amounts[r]) return false;
    }
    return a.cost <= b.cost;
  }

  static void Keep(std::vector<FrontierChoice>& kept, FrontierChoice choice) {
    for (const FrontierChoice& other : kept) {
      if (Beats(other.cover, choice.cover)) return;
    }
    std::erase_if(kept, [&](const FrontierChoice& other) { return Beats(choice.cover, other.cover); });
    kept.push_back(std::move(choice));
  }

  // For components too large to enumerate: clear the node that is cheapest to clear, then the next.
  std::vector<FrontierChoice> Chain(const Component& component) const {
    std::vector<FrontierChoice> kept;
    std::vector<Victim> victims;
    std::vector<Returned> returned(component.nodes.size() * deadlines_);
    std::vector<bool> gone(component.members.size());
    while (kept.size() < kMostChoices) {
      const std::vector<int> next = CheapestToClear(component, gone);
      if (next.empty()) break;
      for (int m : next) {
        gone[m] = true;
        victims.push_back(component.members[m].ways.front());
        Leave(component.members[m], victims.back(), +1, returned);
      }
      FrontierChoice choice = Weigh(component, victims, returned);
      if (FreesSomething(choice)) Keep(kept, std::move(choice));
    }
    return kept;
  }

  // The members on one node, of those who are not gone.
  std::vector<int> CheapestToClear(const Component& component, const std::vector<bool>& gone) const {
    std::vector<int64_t> cost(component.nodes.size(), 0);
    std::vector<std::vector<int>> on(component.nodes.size());
    for (size_t m = 0; m < component.members.size(); ++m) {
      if (gone[m]) continue;
      const Member& member = component.members[m];
      for (int node : member.nodes) {
        if (node < 0) continue;
        cost[node] += OptionOf(member.ways.front()).cost_ms;
        on[node].push_back(static_cast<int>(m));
      }
    }
    int best = -1;
    for (size_t n = 0; n < on.size(); ++n) {
      if (!on[n].empty() && (best < 0 || cost[n] < cost[best])) best = static_cast<int>(n);
    }
    return best < 0 ? std::vector<int>() : on[best];
  }

  const Problem& problem_;
  const Snapshot& snapshot_;
  const int deadlines_;
  const int64_t cost_unit_;
  std::map<Shape, int> spare_for_;
  int spare_ = 0;
  std::unordered_map<NodeId, int> index_;
  std::vector<std::vector<Resources>> free_;  // by deadline and node, if no victim leaves
  std::vector<bool> eligible_;
};

}  // namespace

int Budget::StepsFor(Bytes bytes) const {
  if (bytes == Bytes{0}) return 0;
  if (bytes_per_step <= 0) return steps + 1;
  const double needed = std::ceil(static_cast<double>(bytes.value) / bytes_per_step);
  return needed > steps ? steps + 1 : static_cast<int>(needed);
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

Frontier MakeFrontier(const Problem& problem) { return FrontierMaker(problem).Make(); }

std::vector<int> FreeNodes(const Problem& problem, const std::vector<Victim>& victims) {
  return FrontierMaker(problem).FreeIf(victims);
}

}  // namespace siding
