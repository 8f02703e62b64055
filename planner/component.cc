// The members are decided one after another. What has been decided so far is summed up in a state: what it
// cost and used, the nodes that it freed, and the loads on those nodes that later members are on too. Two
// things keep the states few. A load is only known as far as it can still matter: what is given back beyond
// what is missing, what is taken where even all later members cannot reach the limit, and a node that
// cannot be freed any more are all forgotten. And of two states the one that is no better in anything goes.
//
// This is variable elimination (Bertele and Brioschi, "Nonserial Dynamic Programming", 1972); on one node
// with equal jobs the states are what the table of a knapsack has as cells. How many there are depends on how
// many nodes are open at once, so members are taken in the order of their nodes. If there are too many,
// the cheapest of each kind of progress stay, and greedy clearances are looked at besides; in the end only
// those.
#include "planner/component.h"

#include <algorithm>
#include <limits>
#include <map>

#include "absl/numeric/int128.h"
#include "planner/greedy.h"

namespace siding {
namespace {

constexpr size_t kMostStates = 1000;
constexpr size_t kFewestStates = 50;
// Loads held at once by the states of one component.
constexpr size_t kMostLoads = 1'000'000;

constexpr int64_t kLost = -1;  // as what is given back: the node will not be free whatever follows

bool IsLost(const Load& load) { return load[kSlots] == kLost; }

void Lose(Load& load) {
  std::fill_n(load.begin(), kGiven, kLost);
  load[kFrozen] = std::numeric_limits<int64_t>::max();
}

void Add(Load& to, const Load& load, int sign = +1) {
  for (int q = IsLost(to) ? kFrozen + 1 : 0; q < kQuantities; ++q) to[q] += sign * load[q];
}

// Forgets what cannot matter when at most `rest` is still to come. False: the node cannot bear it.
bool Settle(Load& load, const Limits& limits, const Load& rest) {
  for (int q = kFrozen + 1; q < kQuantities; ++q) {
    if (load[q] > limits.limit[q]) return false;
    if (load[q] + rest[q] <= limits.limit[q]) load[q] = 0;
  }
  if (IsLost(load)) return true;
  bool lost = !limits.wanted || load[kFrozen] > limits.limit[kFrozen];
  for (int q = 0; q < kGiven; ++q) {
    lost |= load[q] + rest[q] < limits.limit[q];
    load[q] = std::min(load[q], limits.limit[q]);
  }
  if (lost) {
    Lose(load);
  } else if (load[kFrozen] + rest[kFrozen] <= limits.limit[kFrozen]) {
    load[kFrozen] = 0;
  }
  return true;
}

// a is at least as good as b in everything but cost.
bool AtLeast(const Amounts& a, const Amounts& b) {
  for (int r = 0; r < kMostRows; ++r) {
    if (a[r] < b[r]) return false;
  }
  return true;
}
bool AtLeast(const std::vector<Load>& a, const std::vector<Load>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    for (int q = 0; q < kGiven; ++q) {
      if (a[i][q] < b[i][q]) return false;
    }
    for (int q = kGiven; q < kQuantities; ++q) {
      if (a[i][q] > b[i][q]) return false;
    }
  }
  return true;
}

class Sweep {
 public:
  Sweep(const Problem& problem, const Component& component, const std::vector<int>& demand, Effort& effort)
      : problem_(problem),
        component_(component),
        demand_(demand),
        effort_(effort),
        deadlines_(static_cast<int>(problem.deadlines.size())),
        rest_(component.limits.size()),
        members_left_(component.limits.size() / deadlines_, 0),
        place_(members_left_.size(), -1) {
    for (const Member& member : component.members) {
      for (size_t rank = 0; rank < member.nodes.size(); ++rank) {
        if (member.nodes[rank] < 0) continue;
        ++members_left_[member.nodes[rank]];
        AddMost(member, rank, +1);
      }
    }
  }

  Enumeration Run() {
    std::vector<State> states(1);
    for (const Member& member : component_.members) {
      states = Decide(member, states);
      if (states.empty()) break;
    }
    Enumeration answer;
    for (State& state : states) answer.choices.push_back({state.total, Follow(state.trail)});
    if (narrowed_) AddGreedy(answer.choices);
    std::erase_if(answer.choices, [&](const FrontierChoice& c) { return !FreesSomething(c.cover); });
    answer.exact = !narrowed_;
    return answer;
  }

 private:
  struct State {
    CoverChoice total;
    int32_t trail = -1;      // the last victim: index into trail_
    std::vector<Load> open;  // place * deadlines + deadline
  };
  struct Departure {
    int32_t before = -1;
    Victim victim;
  };

  // ---- one member after another ----

  std::vector<State> Decide(const Member& member, const std::vector<State>& states) {
    for (size_t rank = 0; rank < member.nodes.size(); ++rank) {
      const int node = member.nodes[rank];
      if (node < 0) continue;
      if (place_[node] < 0) {
        place_[node] = static_cast<int>(open_.size());
        open_.push_back(node);
      }
      --members_left_[node];
      AddMost(member, rank, -1);
    }
    std::vector<int> staying;  // places
    for (size_t place = 0; place < open_.size(); ++place) {
      if (members_left_[open_[place]] > 0) staying.push_back(static_cast<int>(place));
    }
    const std::vector<int> nodes = NodesOf(member.nodes);
    std::vector<State> next;
    for (const State& state : states) {
      Take(member, nodes, nullptr, state, staying, next);
      for (const Alternative& alternative : member.alternatives)
        Take(member, nodes, &alternative, state, staying, next);
    }
    for (int node : open_) place_[node] = -1;
    std::vector<int> open;
    for (int place : staying) {
      place_[open_[place]] = static_cast<int>(open.size());
      open.push_back(open_[place]);
    }
    open_ = std::move(open);
    return Best(std::move(next));
  }

  // The state after this member has left in this way, or stayed; none if that is not possible.
  void Take(const Member& member, const std::vector<int>& nodes, const Alternative* alternative,
            const State& from, const std::vector<int>& staying, std::vector<State>& next) {
    State state{from.total, from.trail, {}};
    if (alternative != nullptr && !Charge(*alternative, demand_, deadlines_, state.total)) return;
    loads_ = from.open;
    loads_.resize(open_.size() * deadlines_);
    effort_.left -= static_cast<int64_t>(loads_.size());
    if (alternative != nullptr) AddLoads(problem_, member, *alternative, place_, +1, loads_);
    for (int node : nodes) {
      for (int k = 0; k < deadlines_; ++k) {
        Load& load = loads_[place_[node] * deadlines_ + k];
        const Limits& limits = component_.limits[node * deadlines_ + k];
        if (!Settle(load, limits, rest_[node * deadlines_ + k])) return;
        // Beyond what is wanted no node counts.
        const bool freed = members_left_[node] == 0 && !IsLost(load);
        if (freed && state.total.amounts[k] < demand_[k]) ++state.total.amounts[k];
      }
    }
    state.open.reserve(staying.size() * deadlines_);
    for (int place : staying) {
      const auto at = loads_.begin() + place * deadlines_;
      state.open.insert(state.open.end(), at, at + deadlines_);
    }
    if (alternative != nullptr) {
      state.trail = static_cast<int32_t>(trail_.size());
      trail_.push_back({from.trail, alternative->victim});
    }
    next.push_back(std::move(state));
  }

  // The most that the member can change there.
  void AddMost(const Member& member, size_t rank, int sign) {
    for (int k = 0; k < deadlines_; ++k) {
      Load most{};
      for (const Alternative& alternative : member.alternatives) {
        if (alternative.victim.by > k) continue;
        const Load load = LoadOf(problem_, alternative, rank);
        for (int q = 0; q < kQuantities; ++q) most[q] = std::max(most[q], load[q]);
      }
      for (int q = 0; q < kQuantities; ++q) rest_[member.nodes[rank] * deadlines_ + k][q] += sign * most[q];
    }
  }

  // ---- few states ----

  std::vector<State> Best(std::vector<State> states) {
    std::stable_sort(states.begin(), states.end(),
                     [](const State& a, const State& b) { return a.total.cost < b.total.cost; });
    std::vector<State> kept;
    for (State& state : states) {
      const auto better = std::find_if(kept.begin(), kept.end(), [&](const State& other) {
        return AtLeast(other.total.amounts, state.total.amounts) && AtLeast(other.open, state.open);
      });
      effort_.left -= better - kept.begin();
      if (better == kept.end()) kept.push_back(std::move(state));
    }
    Narrow(kept);
    return kept;
  }

  size_t Width() const {
    const size_t affordable = kMostLoads / (open_.size() * deadlines_ + 1) / component_.members.size();
    return std::clamp(affordable, kFewestStates, effort_.left > 0 ? kMostStates : kFewestStates);
  }

  // The cheapest of each kind of progress first, then the second cheapest.
  void Narrow(std::vector<State>& states) {
    const size_t width = Width();
    if (states.size() <= width) return;
    narrowed_ = true;
    if (effort_.left <= 0) return states.clear();  // what is found greedily has to do
    std::map<std::vector<int64_t>, int> seen;
    std::vector<std::pair<int, size_t>> order;  // by how many of its kind are cheaper
    for (size_t i = 0; i < states.size(); ++i) order.emplace_back(seen[Progress(states[i])]++, i);
    std::nth_element(order.begin(), order.begin() + static_cast<long>(width), order.end());
    order.resize(width);
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    std::vector<State> kept;
    kept.reserve(width);
    for (const auto& [rank, i] : order) kept.push_back(std::move(states[i]));
    states = std::move(kept);
  }

  std::vector<int64_t> Progress(const State& state) const {
    std::vector<int64_t> progress(state.total.amounts.begin(), state.total.amounts.begin() + deadlines_);
    for (const Load& load : state.open) progress.insert(progress.end(), load.begin(), load.begin() + kGiven);
    return progress;
  }

  bool FreesSomething(const CoverChoice& choice) const {
    return std::any_of(choice.amounts.begin(), choice.amounts.begin() + deadlines_,
                       [](int32_t nodes) { return nodes > 0; });
  }

  std::vector<Victim> Follow(int32_t trail) const {
    std::vector<Victim> victims;
    for (; trail >= 0; trail = trail_[trail].before) victims.push_back(trail_[trail].victim);
    std::sort(victims.begin(), victims.end(),
              [](const Victim& a, const Victim& b) { return a.candidate < b.candidate; });
    return victims;
  }

  // ---- where not all can be looked at ----

  void AddGreedy(std::vector<FrontierChoice>& choices) {
    auto more = ClearInTurn(problem_, component_, demand_, kMostStates, effort_);
    std::move(more.begin(), more.end(), std::back_inserter(choices));
  }

  const Problem& problem_;
  const Component& component_;
  const std::vector<int>& demand_;
  Effort& effort_;
  const int deadlines_;
  std::vector<Load> rest_;         // the most that members not yet decided can change: as limits
  std::vector<int> members_left_;  // by node
  std::vector<int> place_;         // by node: where its loads stand in a state; -1: not open
  std::vector<int> open_;          // by place
  std::vector<Load> loads_;        // scratch
  std::vector<Departure> trail_;
  bool narrowed_ = false;
};

}  // namespace

int64_t Stretched(int64_t amount, Duration before, Duration within) {
  if (before <= Duration(0) || before >= within) return amount;  // too late in any case
  const absl::int128 whole = absl::int128(amount) * within.count();
  const absl::int128 left = (within - before).count();
  return static_cast<int64_t>((whole + left - 1) / left);
}

Load LoadOf(const Option& option, const JobView& job, size_t rank, Duration within) {
  Load load{};
  load[kSlots] = job.per_node.slots;
  load[kGpus] = job.per_node.gpus;
  if (option.stays_in_ram) {
    load[kFrozen] = job.memory[rank].value;
  } else {
    load[kMemory] = job.per_node.memory.value;
  }
  if (option.to_local_disk) load[kLocalDisk] = job.memory[rank].value;
  if (!option.by_rank.empty()) {
    const Quantity alternative = option.early                  ? kEarlyWriting
                                 : option.tier == Tier::kLocal ? kLocalWriting
                                                               : kSharedWriting;
    load[alternative] =
        Stretched(option.by_rank[rank].count(), option.early ? Duration(0) : option.before_writing, within);
  }
  return load;
}

Load LoadOf(const Problem& problem, const Alternative& alternative, size_t rank) {
  const Candidate& candidate = problem.candidates[alternative.victim.candidate];
  return LoadOf(candidate.options[alternative.victim.option], *candidate.job, rank,
                problem.deadlines[alternative.victim.by].within);
}

bool IsFreed(const Limits& limits, const Load& load) {
  if (!limits.wanted || load[kFrozen] > limits.limit[kFrozen]) return false;
  return std::equal(load.begin(), load.begin() + kGiven, limits.limit.begin(), std::greater_equal<>());
}

std::vector<int> NodesOf(const std::vector<int>& by_rank) {
  std::vector<int> nodes;
  std::copy_if(by_rank.begin(), by_rank.end(), std::back_inserter(nodes), [](int node) { return node >= 0; });
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

bool Charge(const Alternative& alternative, const std::vector<int>& demand, int deadlines,
            CoverChoice& total) {
  total.cost += alternative.charge.cost;
  for (int r = 0; r < kMostRows; ++r) total.amounts[r] += alternative.charge.amounts[r];
  for (size_t r = static_cast<size_t>(deadlines); r < demand.size(); ++r) {
    if (total.amounts[r] < demand[r]) return false;
  }
  return true;
}

void AddLoads(const Problem& problem, const Member& member, const Alternative& alternative,
              const std::vector<int>& place, int sign, std::vector<Load>& loads) {
  const int deadlines = static_cast<int>(problem.deadlines.size());
  for (size_t rank = 0; rank < member.nodes.size(); ++rank) {
    if (member.nodes[rank] < 0) continue;
    const Load load = LoadOf(problem, alternative, rank);
    for (int k = alternative.victim.by; k < deadlines; ++k)
      Add(loads[place[member.nodes[rank]] * deadlines + k], load, sign);
  }
}

Enumeration Enumerate(const Problem& problem, const Component& component, const std::vector<int>& demand,
                      Effort& effort) {
  return Sweep(problem, component, demand, effort).Run();
}

}  // namespace siding
