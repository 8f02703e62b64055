// How the least cost is found, and proved to be the least.
//
// The textbook fills a table over (groups x nodes still needed x budget steps). For ten thousand jobs, four
// thousand nodes and 256 steps that is 10^10 cells for each way of leaving, nearly all of which say nothing
// that matters: of most jobs it is plain from the outset whether they are cheap enough to be a victim. So:
//
//   1. Price each row (dual.h). At these prices every group has a best choice; taking just these costs, with
//      what is over or missing charged at the prices, a lower bound of any selection. Departing from a
//      group's best choice raises that bound by the choice's *regret*, which is known.
//   2. Repair that selection greedily to one that meets the demands, then drop what is not needed. Its cost
//      is an upper bound. Between the two bounds there is little room: about one choice's cost per row.
//   3. Only groups whose smallest regret fits into that room can differ from their best choice in anything
//      better. They are the core, a few dozen groups whatever the size of the cluster. The dynamic program
//      runs over the core alone, by increasing regret, and over the states that are reached rather than over
//      all: a state is what has been delivered so far and at what cost; of two that deliver the same only the
//      cheaper is kept, and one whose own bound leaves no room is dropped. Each better selection found on the
//      way makes the room smaller. When no state is left, the best selection found is optimal.
//
// This is the expanding core of Pisinger, "A minimal algorithm for the multiple-choice knapsack problem"
// (EJOR 83, 1995), with several rows, and the bounds of Kellerer, Pferschy, Pisinger, "Knapsack Problems"
// (2004), chapters 9 and 11. In the worst case it visits as many states as the table has cells.
#include "planner/cover.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "planner/dual.h"

namespace siding {
namespace {

constexpr double kHopeless = std::numeric_limits<double>::infinity();
constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max() / 2;
// States kept at once: first few, which finds good selections quickly, then as many as can be afforded. What
// is left out limits what the answer can be said to be.
constexpr size_t kWidths[] = {1'000, 20'000};
// Departures tried with each width.
constexpr size_t kMostDepartures = 1'000'000;

// A selection: per group the index of its choice in the table.
using Selection = std::vector<int>;

class Solver {
 public:
  explicit Solver(const CoverTable& table) : table_(table), priced_(MaximizeDual(table)) {}

  // Looks for a selection that meets the demands, or takes what it is offered. False if it has none.
  bool Begin(const Selection* offered = nullptr) {
    if (offered != nullptr) Offer(*offered);
    if (!found()) Repair();
    return found();
  }
  // The best selection. Without one to begin with it has to look at nearly everything.
  CoverAnswer Finish() {
    for (size_t width : kWidths) {
      SearchCore(width);
      if (Proven()) break;
    }
    if (!found()) return {false, std::isinf(left_out_)};
    CoverAnswer answer{true, Proven(), best_cost_};
    if (!answer.exact) answer.gap = best_cost_ - static_cast<int64_t>(std::floor(left_out_));
    for (int g = 0; g < table_.groups(); ++g) answer.chosen.push_back(best_[g] - table_.begin[g] - 1);
    return answer;
  }
  const Selection& best() const { return best_; }
  bool found() const { return best_cost_ < kUnbounded; }

 private:
  // ---- bounds ----

  double ReducedCost(int c) const {
    double reduced = table_.cost[c];
    for (int r = 0; r < table_.rows; ++r) reduced -= priced_.prices[r] * table_.amount[r][c];
    return reduced;
  }
  double Regret(int group, int c) const { return ReducedCost(c) - ReducedCost(priced_.best[group]); }

  // No better selection has a bound above this. Costs are whole numbers; bounds are computed in doubles.
  double Room() const {
    if (!found()) return std::numeric_limits<double>::infinity();
    const auto cost = static_cast<double>(best_cost_);
    return cost - 1 + 1e-11 * cost + 1e-6;
  }

  // Nothing that was left out could have led to anything better.
  bool Proven() const { return left_out_ > Room(); }

  bool Covers(const Amounts& amounts) const {
    for (int r = 0; r < table_.rows; ++r) {
      if (amounts[r] < table_.demand[r]) return false;
    }
    return true;
  }

  std::pair<Amounts, int64_t> Total(const Selection& selection) const {
    Amounts amounts{};
    int64_t cost = 0;
    for (int c : selection) {
      for (int r = 0; r < table_.rows; ++r) amounts[r] += table_.choices[c].amounts[r];
      cost += table_.choices[c].cost;
    }
    return {amounts, cost};
  }

  void Offer(const Selection& selection) {
    const auto [amounts, cost] = Total(selection);
    if (cost >= best_cost_ || !Covers(amounts)) return;
    best_ = selection;
    best_cost_ = cost;
  }

  // ---- a first selection that meets the demands ----

  double Missing(const Amounts& amounts) const {
    double missing = 0;
    for (int r = 0; r < table_.rows; ++r) {
      missing += std::max(0.0, table_.demand[r] - amounts[r]) / std::max(1.0, std::abs(table_.demand[r]));
    }
    return missing;
  }

  struct Switch {
    double ratio = 0;  // regret per unit of what it makes up for
    int group = 0;
    int choice = 0;
  };

  // Switches that make up for what is missing, the least regretted first; in passes, as each switch changes
  // what the others are worth.
  void Repair() {
    Selection selection = priced_.best;
    Amounts amounts = Total(selection).first;
    for (bool progress = true; progress && !Covers(amounts);) {
      progress = false;
      for (const Switch& s : UsefulSwitches(selection, amounts)) {
        const Amounts after = Switched(amounts, selection[s.group], s.choice);
        if (Missing(after) >= Missing(amounts)) continue;
        amounts = after;
        selection[s.group] = s.choice;
        progress = true;
      }
    }
    if (!Covers(amounts)) return;
    Trim(selection, amounts);
    Offer(selection);
  }

  std::vector<Switch> UsefulSwitches(const Selection& selection, const Amounts& amounts) const {
    std::vector<Switch> switches;
    const double missing = Missing(amounts);
    for (int g = 0; g < table_.groups(); ++g) {
      for (int c = table_.begin[g]; c < table_.begin[g + 1]; ++c) {
        const double gain = missing - Missing(Switched(amounts, selection[g], c));
        if (gain > 0) switches.push_back({(Regret(g, c) - Regret(g, selection[g])) / gain, g, c});
      }
    }
    std::stable_sort(switches.begin(), switches.end(),
                     [](const Switch& a, const Switch& b) { return a.ratio < b.ratio; });
    return switches;
  }

  // What can be left out or done more cheaply, the dearest first.
  void Trim(Selection& selection, Amounts& amounts) const {
    std::vector<int> order(table_.groups());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return table_.choices[selection[a]].cost > table_.choices[selection[b]].cost;
    });
    for (int g : order) {
      int cheapest = selection[g];
      for (int c = table_.begin[g]; c < table_.begin[g + 1]; ++c) {
        if (table_.choices[c].cost < table_.choices[cheapest].cost &&
            Covers(Switched(amounts, selection[g], c)))
          cheapest = c;
      }
      amounts = Switched(amounts, selection[g], cheapest);
      selection[g] = cheapest;
    }
  }

  Amounts Switched(Amounts amounts, int from, int to) const {
    for (int r = 0; r < table_.rows; ++r) {
      amounts[r] += table_.choices[to].amounts[r] - table_.choices[from].amounts[r];
    }
    return amounts;
  }

  // ---- the core ----

  struct State {
    Amounts amounts{};
    int64_t cost = 0;
    int32_t trail = -1;  // how it came about: index into trail_
  };
  struct Departure {
    int32_t before = -1;
    int32_t choice = 0;
  };
  struct CoreGroup {
    int group = 0;
    double regret = 0;            // the smallest of its departures
    std::vector<int> departures;  // choices other than the best
  };

  void SearchCore(size_t width) {
    const std::vector<CoreGroup> core = Core();
    left_out_ = std::numeric_limits<double>::infinity();
    trail_.clear();
    best_trail_ = -1;
    most_gain_.clear();
    std::vector<State> states(1);
    std::tie(states[0].amounts, states[0].cost) = Total(priced_.best);
    for (size_t k = 0; k < core.size() && !states.empty(); ++k) {
      std::vector<State> next = Prune(states, core, k);
      if (next.empty()) break;
      for (int c : core[k].departures) next = Merge(next, Depart(states, core[k].group, c));
      states = std::move(next);
      Narrow(states, trail_.size() > kMostDepartures ? 0 : width);
    }
    if (best_trail_ >= 0) best_ = Follow(best_trail_);
  }

  // Keeps those with the lowest bounds; of equal ones the first.
  void Narrow(std::vector<State>& states, size_t width) {
    if (states.size() <= width) return;
    std::vector<double> bounds;
    bounds.reserve(states.size());
    for (const State& state : states) bounds.push_back(Bound(state));
    std::vector<double> sorted = bounds;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<long>(width), sorted.end());
    const double first_out = sorted[width];
    left_out_ = std::min(left_out_, first_out);
    auto ties = width - std::count_if(bounds.begin(), bounds.end(), [&](double b) { return b < first_out; });
    size_t kept = 0;
    for (size_t i = 0; i < states.size(); ++i) {
      if (bounds[i] < first_out || (bounds[i] == first_out && ties > 0 && ties-- > 0))
        states[kept++] = states[i];
    }
    states.resize(kept);
  }

  std::vector<CoreGroup> Core() const {
    std::vector<CoreGroup> core;
    for (int g = 0; g < table_.groups(); ++g) {
      CoreGroup entry{g, std::numeric_limits<double>::infinity(), {}};
      for (int c = table_.begin[g]; c < table_.begin[g + 1]; ++c) {
        if (c == priced_.best[g]) continue;
        const double regret = Regret(g, c);
        if (priced_.bound + regret > Room()) continue;
        entry.regret = std::min(entry.regret, regret);
        entry.departures.push_back(c);
      }
      if (!entry.departures.empty()) core.push_back(std::move(entry));
    }
    std::stable_sort(core.begin(), core.end(),
                     [](const CoreGroup& a, const CoreGroup& b) { return a.regret < b.regret; });
    return core;
  }

  double Bound(const State& state) const {
    double bound = static_cast<double>(state.cost);
    for (int r = 0; r < table_.rows; ++r) {
      bound += priced_.prices[r] * (table_.demand[r] - state.amounts[r]);
    }
    return bound;
  }

  // States from which departures in groups k and later can still lead to something better: one at least, and
  // as many as it takes to make up for what is missing, each with the regret of group k or more.
  std::vector<State> Prune(const std::vector<State>& states, const std::vector<CoreGroup>& core,
                           size_t k) const {
    std::vector<State> kept;
    for (const State& state : states) {
      double departures = 1;
      for (int r = 0; r < table_.rows; ++r) {
        const double missing = table_.demand[r] - state.amounts[r];
        if (missing <= 0) continue;
        const double gain = MostGain(core, k, r);
        departures = std::max(departures, gain > 0 ? std::ceil(missing / gain) : kHopeless);
      }
      if (departures < kHopeless && Bound(state) + departures * core[k].regret <= Room())
        kept.push_back(state);
    }
    return kept;
  }

  // The most that one departure in group k or later can add to a row.
  double MostGain(const std::vector<CoreGroup>& core, size_t k, int row) const {
    if (most_gain_.empty()) {
      most_gain_.assign((core.size() + 1) * table_.rows, 0.0);
      for (size_t j = core.size(); j-- > 0;) {
        const int best = priced_.best[core[j].group];
        for (int r = 0; r < table_.rows; ++r) {
          double most = most_gain_[(j + 1) * table_.rows + r];
          for (int c : core[j].departures) {
            most = std::max(most, table_.amount[r][c] - table_.amount[r][best]);
          }
          most_gain_[j * table_.rows + r] = most;
        }
      }
    }
    return most_gain_[k * table_.rows + row];
  }

  // The states with this group's best choice exchanged for another, as far as they leave room.
  std::vector<State> Depart(const std::vector<State>& states, int group, int choice) {
    std::vector<State> departed;
    const int best = priced_.best[group];
    for (const State& from : states) {
      State state{Switched(from.amounts, best, choice),
                  from.cost + table_.choices[choice].cost - table_.choices[best].cost, -1};
      if (Bound(state) > Room()) continue;
      state.trail = static_cast<int32_t>(trail_.size());
      trail_.push_back({from.trail, choice});
      if (state.cost < best_cost_ && Covers(state.amounts)) {
        best_cost_ = state.cost;
        best_trail_ = state.trail;
      }
      departed.push_back(state);
    }
    return departed;
  }

  // Both are ordered by amounts, as adding the same to all keeps an order. Of equals the cheaper stays.
  static std::vector<State> Merge(const std::vector<State>& a, const std::vector<State>& b) {
    std::vector<State> merged;
    merged.reserve(a.size() + b.size());
    for (auto x = a.begin(), y = b.begin(); x != a.end() || y != b.end();) {
      if (y == b.end() || (x != a.end() && x->amounts < y->amounts)) {
        merged.push_back(*x++);
      } else if (x == a.end() || y->amounts < x->amounts) {
        merged.push_back(*y++);
      } else {
        merged.push_back(y->cost < x->cost ? *y : *x);
        ++x, ++y;
      }
    }
    return merged;
  }

  Selection Follow(int32_t trail) const {
    Selection selection = priced_.best;
    for (; trail >= 0; trail = trail_[trail].before) {
      const int choice = trail_[trail].choice;
      const auto next = std::upper_bound(table_.begin.begin(), table_.begin.end(), choice);
      selection[next - table_.begin.begin() - 1] = choice;
    }
    return selection;
  }

  const CoverTable& table_;
  const Priced priced_;
  Selection best_;
  int64_t best_cost_ = kUnbounded;
  int32_t best_trail_ = -1;
  double left_out_ =
      std::numeric_limits<double>::infinity();  // the lowest bound of a state that was left out
  std::vector<Departure> trail_;
  mutable std::vector<double> most_gain_;
};

struct Thrifty {
  Selection selection;
  bool proves = false;  // if this one takes too much, every selection does
};

// Where nothing was found greedily: the selection that takes least of what is short. With one short row this
// proves that there is none, or gives one to begin with.
std::optional<Thrifty> LeastOfWhatIsShort(const std::vector<CoverGroup>& groups,
                                          const std::vector<int>& demand) {
  std::vector<int> wanted, wanted_rows;
  for (size_t r = 0; r < demand.size(); ++r) {
    if (demand[r] <= 0) continue;
    wanted.push_back(demand[r]);
    wanted_rows.push_back(static_cast<int>(r));
  }
  const size_t short_rows = demand.size() - wanted.size();
  std::vector<CoverGroup> eased;
  for (const CoverGroup& group : groups) {
    CoverGroup easy;
    for (const CoverChoice& choice : group) {
      CoverChoice c;
      for (size_t w = 0; w < wanted_rows.size(); ++w) c.amounts[w] = choice.amounts[wanted_rows[w]];
      for (size_t r = 0; r < demand.size(); ++r) {
        if (demand[r] > 0) continue;
        // One short row is counted as it is, several as shares of what there is of each.
        const int64_t share = short_rows == 1 ? 1 : (1 << 20) / std::max(1, -demand[r]);
        c.cost += share * -choice.amounts[r];
      }
      easy.push_back(c);
    }
    eased.push_back(std::move(easy));
  }
  const CoverTable table(eased, wanted);
  Solver solver(table);
  if (!solver.Begin()) return std::nullopt;  // not even the nodes are there, whatever it takes
  const auto answer = solver.Finish();
  return Thrifty{solver.best(), short_rows == 1 && answer.exact};
}

}  // namespace

CoverAnswer SolveCover(const std::vector<CoverGroup>& groups, const std::vector<int>& demand) {
  const CoverTable table(groups, demand);
  Solver solver(table);
  if (solver.Begin()) return solver.Finish();
  const CoverAnswer none;
  const auto short_rows = std::count_if(demand.begin(), demand.end(), [](int d) { return d <= 0; });
  if (short_rows == 0 || short_rows == static_cast<long>(demand.size())) return none;
  const auto least = LeastOfWhatIsShort(groups, demand);
  if (!least || (!solver.Begin(&least->selection) && least->proves)) return none;
  return solver.Finish();
}

}  // namespace siding
