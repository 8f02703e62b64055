#include "planner/frontier.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "planner/component.h"
#include "planner/core.h"
#include "planner/greedy.h"
#include "planner/grouping.h"
#include "planner/nodes.h"

namespace siding {
namespace {

class FrontierMaker {
 public:
  explicit FrontierMaker(const Problem& problem)
      : problem_(problem),
        snapshot_(problem.snapshot),
        deadlines_(static_cast<int>(problem.deadlines.size())),
        nodes_(problem),
        cost_unit_(CostUnit(problem)) {
    CountSpare();
  }

  Frontier Make(Effort& effort, size_t large) {
    Frontier frontier;
    frontier.demand = Demand();
    const int missing = NodesMissing(frontier.demand);
    std::vector<Component> components;
    if (missing > 0) {
      std::vector<Member> members = Members();
      components = Group(nodes_, members);
      if (HasLarge(components, large)) {
        const Component all = Whole(nodes_, members);
        const std::vector<double> prices = ClearingPrices(problem_, all);
        Effort quick;  // it is not cut short
        frontier.known = ClearEnough(problem_, all, frontier.demand, prices, false, quick);
        std::optional<int64_t> most;
        if (frontier.known) most = frontier.known->cover.cost;
        components = GroupCore(all, CoreNodes(prices, missing, most), members);
        if (most && HasLarge(components, large)) {
          const int64_t less_loss = *most / cost_unit_ * cost_unit_ - 1;
          components = GroupCore(all, CoreNodes(prices, missing, less_loss), members);
        }
      }
    }
    Search(std::move(components), effort, frontier);
    return frontier;
  }

  std::optional<bool> CanMeet(Effort& effort) {
    Frontier frontier;
    frontier.demand = Demand();
    const int missing = NodesMissing(frontier.demand);
    std::vector<Member> members = Members();
    const Component all = Whole(nodes_, members);
    const std::vector<double> prices = ClearingPrices(problem_, all);
    const auto can_be_freed =
        std::count_if(prices.begin(), prices.end(), [](double price) { return std::isfinite(price); });
    if (can_be_freed < missing) return false;
    if (ClearEnough(problem_, all, frontier.demand, prices, true, effort)) return true;
    Search(GroupCore(all, CoreNodes(prices, missing, std::nullopt), members), effort, frontier);
    const Solution solution = Solve(frontier);
    if (!solution.found && !solution.exact) return std::nullopt;
    return solution.found;
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
      demand[NodesRow(k)] = nodes_.Missing(k);
      demand[SharedRow(k)] = -problem_.deadlines[k].shared.steps;
    }
    demand[EarlyRow()] = -problem_.early.steps;
    demand[SpareRow()] = -spare_;
    return demand;
  }

  // Nodes of which there are enough already, and unused resources, cannot bind.
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

  // How many ranks may migrate in all: the number that has room for every job. Each that migrates within that
  // number finds enough room, whatever the others take.
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

  // ---- components ----

  // Those who could leave, and by that help to free a node.
  std::vector<Member> Members() const {
    std::vector<Member> members;
    for (size_t c = 0; c < problem_.candidates.size(); ++c) {
      if (problem_.candidates[c].options.empty() || !IsOnWanted(static_cast<int>(c))) continue;
      Member member;
      member.candidate = static_cast<int>(c);
      member.alternatives = AlternativesOf(member.candidate);
      if (!member.alternatives.empty()) members.push_back(std::move(member));
    }
    Place(members);
    return members;
  }

  bool IsOnWanted(int c) const {
    return std::any_of(nodes_.Of(c).begin(), nodes_.Of(c).end(),
                       [&](int node) { return node >= 0 && nodes_.IsWanted(node); });
  }

  // Says of each where it is, as far as that can matter.
  void Place(std::vector<Member>& members) const {
    const std::vector<bool> crowded = Crowded(members);
    for (Member& member : members) {
      member.nodes = nodes_.Of(member.candidate);
      for (int& node : member.nodes) {
        if (node >= 0 && !nodes_.IsWanted(node) && !crowded[node]) node = -1;
      }
    }
  }

  // Those of all nodes that are `core`, and the members that are on any of them.
  std::vector<Component> GroupCore(const Component& all, const std::vector<bool>& core,
                                   std::vector<Member>& members) {
    for (size_t i = 0; i < core.size(); ++i) {
      if (!core[i]) nodes_.LeaveOut(all.nodes[i]);
    }
    std::erase_if(members, [&](const Member& member) { return !IsOnWanted(member.candidate); });
    Place(members);
    return Group(nodes_, members);
  }

  // The smallest first, so that the effort suffices for most.
  void Search(std::vector<Component> components, Effort& effort, Frontier& frontier) const {
    std::stable_sort(components.begin(), components.end(), [](const Component& a, const Component& b) {
      return a.members.size() < b.members.size();
    });
    for (const Component& component : components) {
      Enumeration cleared = Enumerate(problem_, component, frontier.demand, effort);
      frontier.exact &= cleared.exact;
      if (!cleared.choices.empty()) frontier.groups.push_back(std::move(cleared.choices));
    }
    LeaveOutIdleRows(frontier);
  }

  static bool HasLarge(const std::vector<Component>& components, size_t large) {
    return std::any_of(components.begin(), components.end(),
                       [&](const Component& component) { return component.members.size() >= large; });
  }

  // That have to be freed in all.
  int NodesMissing(const std::vector<int>& demand) const {
    return std::max(0, *std::max_element(demand.begin(), demand.begin() + deadlines_));
  }

  // Nodes that need not be freed, but cannot bear that all members there leave in the way that takes the
  // most.
  std::vector<bool> Crowded(const std::vector<Member>& members) const {
    std::vector<Load> most(nodes_.size());
    for (const Member& member : members) {
      const Candidate& candidate = problem_.candidates[member.candidate];
      for (size_t rank = 0; rank < candidate.job->nodes.size(); ++rank) {
        const int node = nodes_.Of(member.candidate)[rank];
        if (node < 0 || nodes_.IsWanted(node)) continue;
        Load its{};
        for (const Alternative& alternative : member.alternatives) {
          const Load load = LoadOf(problem_, alternative, rank);
          for (int q = 0; q < kQuantities; ++q) its[q] = std::max(its[q], load[q]);
        }
        for (int q = 0; q < kQuantities; ++q) most[node][q] += its[q];
      }
    }
    std::vector<bool> crowded(most.size());
    for (size_t n = 0; n < most.size(); ++n) {
      const Limits limits = nodes_.LimitsOf(static_cast<int>(n), 0);
      for (int q = kFrozen + 1; q < kQuantities; ++q) {
        if (most[n][q] > limits.limit[q]) crowded[n] = true;
      }
    }
    return crowded;
  }

  // By the first deadline that it can meet; and, if it writes, by any later one instead, as it then leaves
  // more to those who must be early.
  std::vector<Alternative> AlternativesOf(int c) const {
    const Candidate& candidate = problem_.candidates[c];
    std::vector<Alternative> alternatives;
    if (LeavesBy(problem_, *candidate.job, problem_.deadlines.back().within)) return alternatives;
    for (size_t o = 0; o < candidate.options.size(); ++o) {
      const Option& option = candidate.options[o];
      if (option.migrates && !MayMigrate(*candidate.job)) continue;
      for (int k = 0; k < deadlines_; ++k) {
        const Budget& budget = option.early ? problem_.early : problem_.deadlines[k].shared;
        if (option.release > problem_.deadlines[k].within || SharedSteps(option, k) > budget.steps) continue;
        const Victim victim{c, static_cast<int>(o), k};
        alternatives.push_back({victim, Charge(victim)});
        if (option.by_rank.empty() || option.early) break;
      }
      if (candidate.strict && !alternatives.empty()) break;
    }
    return alternatives;
  }

  // What it uses of what can be written to shared storage by the deadline.
  int SharedSteps(const Option& option, int k) const {
    if (option.early) return problem_.early.StepsFor(option.shared_bytes);
    const Deadline& deadline = problem_.deadlines[k];
    if (option.shared_bytes > Bytes{0} && option.before_writing >= deadline.within)
      return deadline.shared.steps + 1;
    return deadline.shared.StepsFor(
        Bytes{Stretched(option.shared_bytes.value, option.before_writing, deadline.within)});
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
  Nodes nodes_;
  const int64_t cost_unit_;
  std::map<Shape, int> spare_for_;
  int spare_ = 0;
};

}  // namespace

std::vector<CoverGroup> GroupsOf(const Frontier& frontier) {
  std::vector<CoverGroup> groups;
  groups.reserve(frontier.groups.size());
  for (const auto& choices : frontier.groups) {
    CoverGroup& group = groups.emplace_back();
    for (const FrontierChoice& choice : choices) group.push_back(choice.cover);
  }
  return groups;
}

Solution Solve(const Frontier& frontier) {
  const CoverAnswer answer = SolveCover(GroupsOf(frontier), frontier.demand);
  const bool is_best = answer.found && (!frontier.known || answer.cost <= frontier.known->cover.cost);
  Solution solution{is_best || frontier.known, frontier.exact && answer.exact, {}};
  if (!is_best) {
    if (frontier.known) solution.victims = frontier.known->victims;
    return solution;
  }
  for (size_t g = 0; g < frontier.groups.size(); ++g) {
    if (answer.chosen[g] < 0) continue;
    const auto& victims = frontier.groups[g][answer.chosen[g]].victims;
    solution.victims.insert(solution.victims.end(), victims.begin(), victims.end());
  }
  return solution;
}

int Budget::StepsFor(Bytes bytes) const {
  if (bytes == Bytes{0}) return 0;
  if (bytes_per_step <= 0) return steps + 1;
  const double needed = std::ceil(static_cast<double>(bytes.value) / bytes_per_step);
  return needed > steps ? steps + 1 : static_cast<int>(needed);
}

Frontier MakeFrontier(const Problem& problem, Effort& effort, size_t large) {
  return FrontierMaker(problem).Make(effort, large);
}

std::optional<bool> CanMeetDemand(const Problem& problem, Effort& effort) {
  return FrontierMaker(problem).CanMeet(effort);
}

}  // namespace siding
