#include "planner/frontier.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "planner/component.h"
#include "planner/core.h"
#include "planner/greedy.h"

namespace siding {
namespace {

class FrontierMaker {
 public:
  explicit FrontierMaker(const Problem& problem)
      : problem_(problem),
        snapshot_(problem.snapshot),
        deadlines_(static_cast<int>(problem.deadlines.size())),
        cost_unit_(CostUnit(problem)) {
    CountSpare();
    index_.reserve(snapshot_.nodes.size());
    for (size_t i = 0; i < snapshot_.nodes.size(); ++i) index_[snapshot_.nodes[i].id] = static_cast<int>(i);
    FreeByThemselves();
    for (size_t n = 0; n < snapshot_.nodes.size(); ++n) {
      const int node = static_cast<int>(n);
      wanted_.push_back(eligible_[node] && !FreeByItself(node, 0));
    }
    for (const Candidate& candidate : problem.candidates) {
      std::vector<int>& nodes = on_.emplace_back();
      for (const NodeId& id : candidate.job->nodes) {
        auto it = index_.find(id);
        nodes.push_back(it != index_.end() ? it->second : -1);
      }
    }
  }

  Frontier Make(size_t tangled) {
    Frontier frontier;
    frontier.demand = Demand();
    std::vector<Component> components;
    if (NodesMissing(frontier.demand) > 0) {
      std::vector<Member> members = Members();
      components = Group(members);
      if (IsTangled(components, tangled)) {
        frontier.known = KeepCore(members, frontier.demand);
        components = Group(std::move(members));
      }
    }
    Effort effort;
    for (const Component& component : components) {
      Clearances cleared = Clear(problem_, component, frontier.demand, effort);
      frontier.exact &= cleared.exact;
      if (!cleared.choices.empty()) frontier.groups.push_back(std::move(cleared.choices));
    }
    LeaveOutIdleRows(frontier);
    return frontier;
  }

  std::optional<bool> CanMeet() const {
    const std::vector<int> demand = Demand();
    const Component all = Whole(Members());
    const std::vector<double> prices = ClearingPrices(problem_, all);
    const auto can_be_freed =
        std::count_if(prices.begin(), prices.end(), [](double price) { return std::isfinite(price); });
    if (can_be_freed < NodesMissing(demand)) return false;
    if (ClearEnough(problem_, all, demand, prices, true)) return true;
    return std::nullopt;
  }

  std::vector<Victim> Trim(std::vector<Victim> victims) const {
    if (deadlines_ > 1) return victims;
    const auto cost = [&](const Victim& v) {
      return problem_.candidates[v.candidate].options[v.option].cost_ms;
    };
    std::vector<Victim> order = victims;
    std::sort(order.begin(), order.end(), [&](const Victim& a, const Victim& b) {
      return std::pair(-cost(a), a.candidate) < std::pair(-cost(b), b.candidate);
    });
    std::vector<Load> loads(snapshot_.nodes.size());
    for (const Victim& victim : victims) AddTo(loads, victim, +1);
    int missing = NodesMissing(Demand());
    for (size_t n = 0; n < loads.size(); ++n) missing -= IsFreed(LimitsOf(static_cast<int>(n), 0), loads[n]);
    for (const Victim& victim : order) {
      const int freed = FreedOf(victim, loads);
      AddTo(loads, victim, -1);
      const int lost = freed - FreedOf(victim, loads);
      if (missing + lost > 0) {
        AddTo(loads, victim, +1);
        continue;
      }
      missing += lost;
      std::erase_if(victims, [&](const Victim& v) { return v.candidate == victim.candidate; });
    }
    return victims;
  }

  // By deadline.
  std::vector<std::vector<int>> FreeIf(const std::vector<Victim>& victims) const {
    std::vector<Load> loads(snapshot_.nodes.size());
    std::vector<std::vector<int>> free(deadlines_);
    for (int k = 0; k < deadlines_; ++k) {
      for (const Victim& victim : victims) {
        if (victim.by == k) AddTo(loads, victim, +1);
      }
      for (size_t n = 0; n < snapshot_.nodes.size(); ++n) {
        const int node = static_cast<int>(n);
        if (FreeByItself(node, k) || IsFreed(LimitsOf(node, k), loads[n])) free[k].push_back(node);
      }
    }
    return free;
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

  // Nodes of which there are enough already, and what nobody uses, cannot bind.
  static void LeaveOutIdleRows(Frontier& frontier) {
    int rows = 0;
    for (int r = 0; r < static_cast<int>(frontier.demand.size()); ++r) {
      bool used = frontier.demand[r] > 0;
      for (const auto& group : frontier.groups) {
        for (const FrontierChoice& choice : group) used |= choice.cover.amounts[r] < 0;
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
  static int64_t CostUnit(const Problem& problem) {
    double sum = 1;
    for (const Candidate& candidate : problem.candidates) {
      int64_t most = 0;
      for (const Option& option : candidate.options) {
        if (option.release <= problem.deadlines.back().within) most = std::max(most, option.cost_ms);
      }
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
        if (!LeavesForUs(problem_, job)) continue;
        for (const NodeId& node : job.nodes) {
          if (auto it = index_.find(node); it != index_.end()) free[it->second] += GivesBack(job);
        }
      }
    }
  }

  bool FreeByItself(int node, int k) const {
    return eligible_[node] && free_[k][node].Covers(problem_.per_node);
  }

  void AddTo(std::vector<Load>& loads, const Victim& victim, int sign) const {
    const Candidate& candidate = problem_.candidates[victim.candidate];
    for (size_t rank = 0; rank < candidate.job->nodes.size(); ++rank) {
      const int node = on_[victim.candidate][rank];
      if (node < 0) continue;
      const Load load = LoadOf(candidate.options[victim.option], *candidate.job, rank);
      for (int q = 0; q < kQuantities; ++q) loads[node][q] += sign * load[q];
    }
  }

  // Nodes of the victim's that are freed by the first deadline.
  int FreedOf(const Victim& victim, const std::vector<Load>& loads) const {
    std::vector<int> nodes = on_[victim.candidate];
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return static_cast<int>(std::count_if(nodes.begin(), nodes.end(), [&](int node) {
      return node >= 0 && IsFreed(LimitsOf(node, 0), loads[node]);
    }));
  }

  Limits LimitsOf(int n, int k) const {
    const NodeView& node = snapshot_.nodes[n];
    const Resources& wanted = problem_.per_node;
    const Resources& free = free_[k][n];
    const int64_t within = problem_.deadlines[k].within.count();
    Limits limits;
    limits.wanted = wanted_[n] && !FreeByItself(n, k);
    limits.limit[kSlots] = std::max(0, wanted.slots - free.slots);
    limits.limit[kMemory] = std::max<int64_t>(0, wanted.memory.value - free.memory.value);
    limits.limit[kGpus] = std::max(0, wanted.gpus - free.gpus);
    limits.limit[kFrozen] = std::max<int64_t>(0, node.ram_available.value - wanted.memory.value);
    limits.limit[kLocalDisk] = node.local_disk_free.value;
    limits.limit[kLocalWriting] = limits.limit[kSharedWriting] = within;
    limits.limit[kEarlyWriting] = (problem_.arrival - snapshot_.now).count();
    return limits;
  }

  // ---- components ----

  // Those who could leave, and by that help to free a node.
  std::vector<Member> Members() const {
    std::vector<Member> members;
    for (size_t c = 0; c < problem_.candidates.size(); ++c) {
      if (problem_.candidates[c].options.empty() || !IsOnWanted(static_cast<int>(c))) continue;
      Member member;
      member.candidate = static_cast<int>(c);
      member.ways = Ways(member.candidate);
      if (!member.ways.empty()) members.push_back(std::move(member));
    }
    Place(members);
    return members;
  }

  bool IsOnWanted(int c) const {
    return std::any_of(on_[c].begin(), on_[c].end(), [&](int node) { return node >= 0 && wanted_[node]; });
  }

  // Says of each where it is, as far as that can matter.
  void Place(std::vector<Member>& members) const {
    const std::vector<bool> crowded = Crowded(members);
    for (Member& member : members) {
      member.nodes = on_[member.candidate];
      for (int& node : member.nodes) {
        if (node >= 0 && !wanted_[node] && !crowded[node]) node = -1;
      }
    }
  }

  // Leaves out the nodes that are too dear for a cheapest plan, and those who are on no others. The plan that
  // shows it; nullopt: none was found quickly.
  std::optional<FrontierChoice> KeepCore(std::vector<Member>& members, const std::vector<int>& demand) {
    const Component all = Whole(members);
    const std::vector<double> prices = ClearingPrices(problem_, all);
    auto known = ClearEnough(problem_, all, demand, prices, false);
    const std::vector<bool> core = CoreNodes(
        prices, NodesMissing(demand), known ? std::optional<int64_t>(known->cover.cost) : std::nullopt);
    for (size_t i = 0; i < core.size(); ++i) {
      if (!core[i]) wanted_[all.nodes[i]] = false;
    }
    std::erase_if(members, [&](const Member& member) { return !IsOnWanted(member.candidate); });
    Place(members);
    return known;
  }

  static bool IsTangled(const std::vector<Component>& components, size_t tangled) {
    return std::any_of(components.begin(), components.end(),
                       [&](const Component& component) { return component.members.size() >= tangled; });
  }

  // That have to be freed in all.
  int NodesMissing(const std::vector<int>& demand) const {
    return std::max(0, *std::max_element(demand.begin(), demand.begin() + deadlines_));
  }

  // Nodes that need not be freed, but cannot bear that all members there leave in the way that takes the
  // most.
  std::vector<bool> Crowded(const std::vector<Member>& members) const {
    std::vector<Load> most(snapshot_.nodes.size());
    for (const Member& member : members) {
      const Candidate& candidate = problem_.candidates[member.candidate];
      for (size_t rank = 0; rank < candidate.job->nodes.size(); ++rank) {
        const int node = on_[member.candidate][rank];
        if (node < 0 || wanted_[node]) continue;
        Load its{};
        for (const Way& way : member.ways) {
          const Load load = LoadOf(problem_, way, rank);
          for (int q = 0; q < kQuantities; ++q) its[q] = std::max(its[q], load[q]);
        }
        for (int q = 0; q < kQuantities; ++q) most[node][q] += its[q];
      }
    }
    std::vector<bool> crowded(most.size());
    for (size_t n = 0; n < most.size(); ++n) {
      const Limits limits = LimitsOf(static_cast<int>(n), 0);
      for (int q = kFrozen + 1; q < kQuantities; ++q) {
        if (most[n][q] > limits.limit[q]) crowded[n] = true;
      }
    }
    return crowded;
  }

  // By the first deadline that it can meet; and, if it writes, by any later one instead, as it then leaves
  // more to those who must be early.
  std::vector<Way> Ways(int c) const {
    const Candidate& candidate = problem_.candidates[c];
    std::vector<Way> ways;
    for (size_t o = 0; o < candidate.options.size(); ++o) {
      const Option& option = candidate.options[o];
      if (option.migrates && !MayMigrate(*candidate.job)) continue;
      for (int k = 0; k < deadlines_; ++k) {
        const Budget& budget = option.early ? problem_.early : problem_.deadlines[k].shared;
        if (option.release > problem_.deadlines[k].within || SharedSteps(option, k) > budget.steps) continue;
        const Victim victim{c, static_cast<int>(o), k};
        ways.push_back({victim, Charge(victim)});
        if (option.by_rank.empty() || option.early) break;
      }
      if (candidate.strict && !ways.empty()) break;
    }
    return ways;
  }

  Component Whole(std::vector<Member> members) const {
    Component all;
    all.members = std::move(members);
    Finish(all);
    return all;
  }

  // Union-find over the nodes that members share.
  std::vector<Component> Group(std::vector<Member> members) const {
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
    for (Component& component : components) Finish(component);
    return components;
  }

  // Members come in the order of their nodes, so that few nodes are open at once (component.cc), and their
  // nodes become indices into the component's.
  void Finish(Component& component) const {
    std::vector<int> nodes;
    for (const Member& member : component.members) {
      std::copy_if(member.nodes.begin(), member.nodes.end(), std::back_inserter(nodes),
                   [](int n) { return n >= 0; });
    }
    const auto by_id = [&](int a, int b) { return snapshot_.nodes[a].id < snapshot_.nodes[b].id; };
    std::sort(nodes.begin(), nodes.end(), by_id);
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    for (int node : nodes) {
      for (int k = 0; k < deadlines_; ++k) component.limits.push_back(LimitsOf(node, k));
    }
    component.nodes = nodes;
    const int none = static_cast<int>(nodes.size());
    std::vector<std::pair<int, int>> order;  // by the first node, then the candidate
    for (size_t m = 0; m < component.members.size(); ++m) {
      int first = none;
      for (int& node : component.members[m].nodes) {
        if (node < 0) continue;
        node = static_cast<int>(std::lower_bound(nodes.begin(), nodes.end(), node, by_id) - nodes.begin());
        first = std::min(first, node);
      }
      order.emplace_back(first, static_cast<int>(m));
    }
    std::sort(order.begin(), order.end());
    std::vector<Member> members;
    members.reserve(order.size());
    for (const auto& [first, m] : order) members.push_back(std::move(component.members[m]));
    component.members = std::move(members);
  }

  // What it uses of what can be written to shared storage by the deadline. Bytes that follow a notice have
  // only what is left of the time then, so they count as so many more: where they fit with all the others,
  // those that follow a notice as long or longer fit into the time behind it.
  int SharedSteps(const Option& option, int k) const {
    if (option.early) return problem_.early.StepsFor(option.shared_bytes);
    const Deadline& deadline = problem_.deadlines[k];
    if (option.notice == Duration(0) || option.shared_bytes == Bytes{0})
      return deadline.shared.StepsFor(option.shared_bytes);
    if (option.notice >= deadline.within) return deadline.shared.steps + 1;
    const double more = ToSeconds(deadline.within) / ToSeconds(deadline.within - option.notice);
    const double bytes = std::ceil(static_cast<double>(option.shared_bytes.value) * more);
    return deadline.shared.StepsFor(Bytes{static_cast<int64_t>(bytes)});
  }

  // Costs order first by loss, then by the number of victims, each counted 16 and its priority's rank.
  CoverChoice Charge(const Victim& victim) const {
    const Candidate& candidate = problem_.candidates[victim.candidate];
    const Option& option = candidate.options[victim.option];
    CoverChoice charge;
    charge.cost = option.cost_ms * cost_unit_ + 16 + std::clamp(candidate.job->priority, 0, 15);
    if (option.early) {
      charge.amounts[EarlyRow()] = -SharedSteps(option, victim.by);
    } else {
      for (int k = victim.by; k < deadlines_; ++k) charge.amounts[SharedRow(k)] = -SharedSteps(option, k);
    }
    if (option.migrates) charge.amounts[SpareRow()] = -static_cast<int>(candidate.job->nodes.size());
    return charge;
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
  std::vector<bool> wanted_;          // by node: it is to be freed, if that is worth while
  std::vector<std::vector<int>> on_;  // by candidate and rank: the node; -1: not one of the snapshot's
};

}  // namespace

int Budget::StepsFor(Bytes bytes) const {
  if (bytes == Bytes{0}) return 0;
  if (bytes_per_step <= 0) return steps + 1;
  const double needed = std::ceil(static_cast<double>(bytes.value) / bytes_per_step);
  return needed > steps ? steps + 1 : static_cast<int>(needed);
}

bool LeavesForUs(const Problem& problem, const JobView& job) {
  return job.releasing_for == JobId() || std::find(problem.requests.begin(), problem.requests.end(),
                                                   job.releasing_for) != problem.requests.end();
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

Frontier MakeFrontier(const Problem& problem, size_t tangled) { return FrontierMaker(problem).Make(tangled); }

std::optional<bool> CanMeetDemand(const Problem& problem) { return FrontierMaker(problem).CanMeet(); }

std::vector<Victim> Trimmed(const Problem& problem, std::vector<Victim> victims) {
  return FrontierMaker(problem).Trim(std::move(victims));
}

std::vector<std::vector<int>> FreeNodes(const Problem& problem, const std::vector<Victim>& victims) {
  return FrontierMaker(problem).FreeIf(victims);
}

}  // namespace siding
