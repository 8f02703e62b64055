// The bound: who frees the nodes S pays every job that leaves, and a job on k of the wanted nodes was charged
// 1/k of its cost to each, so at most its cost in all. On one node, two relaxations bound the least: of what
// gives back enough of one quantity, the fractional knapsack (Dantzig, "Discrete-variable extremum problems",
// 1957); and where jobs have to leave, of what takes no more of one quantity than the node can bear, the
// multiple-choice knapsack's Lagrangian (Kellerer, Pferschy, Pisinger, "Knapsack Problems", 2004, chapter
// 11).
#include "planner/core.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace siding {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Costs are whole numbers up to 2^62 and the bounds are sums of doubles.
constexpr double kRounding = 1e-9;

// One way of one job to leave, as one node sees it.
struct Offer {
  Load load{};      // of all its ranks there
  double cost = 0;  // this node's part
};
using Offers = std::vector<Offer>;  // of one job

// By differences: in sums, a high price on large loads would drown what the offers cost.
const Offer& CheapestOf(const Offers& offers, int quantity, double price) {
  return *std::min_element(offers.begin(), offers.end(), [&](const Offer& a, const Offer& b) {
    return a.cost - b.cost < price * static_cast<double>(b.load[quantity] - a.load[quantity]);
  });
}

class Prices {
 public:
  Prices(const Problem& problem, const Component& component)
      : problem_(problem),
        component_(component),
        deadlines_(static_cast<int>(problem.deadlines.size())),
        on_(component.nodes.size()) {
    for (const Member& member : component.members) AddOffers(member);
  }

  // As by the last deadline for which it is wanted: less is missing then than before, and more can be borne.
  double Of(int node) const {
    for (int at = (node + 1) * deadlines_ - 1; at >= node * deadlines_; --at) {
      const Limits& limits = component_.limits[at];
      if (!limits.wanted) continue;
      double price = 0;
      for (int q = 0; q < kGiven; ++q) {
        if (limits.limit[q] > 0) price = std::max(price, LeastToGive(on_[node], q, limits.limit[q]));
      }
      const std::vector<const Offers*> needed = Needed(on_[node], limits);
      for (int q = kGiven; q < kQuantities; ++q)
        price = std::max(price, LeastToBear(needed, q, limits.limit[q]));
      return price;
    }
    return kNever;
  }

 private:
  bool IsWanted(int node) const {
    return std::any_of(component_.limits.begin() + node * deadlines_,
                       component_.limits.begin() + (node + 1) * deadlines_,
                       [](const Limits& limits) { return limits.wanted; });
  }

  void AddOffers(const Member& member) {
    std::vector<int> nodes = NodesOf(member.nodes);
    std::erase_if(nodes, [&](int node) { return !IsWanted(node); });
    for (int node : nodes) {
      Offers& offers = on_[node].emplace_back();
      for (const Alternative& alternative : member.alternatives) {
        Offer& offer = offers.emplace_back();
        offer.cost = static_cast<double>(alternative.charge.cost) / static_cast<double>(nodes.size());
        for (size_t rank = 0; rank < member.nodes.size(); ++rank) {
          if (member.nodes[rank] != node) continue;
          const Load load = LoadOf(problem_, alternative, rank);
          std::transform(load.begin(), load.end(), offer.load.begin(), offer.load.begin(), std::plus<>());
        }
      }
    }
  }

  static int64_t MostGiven(const Offers& offers, int quantity) {
    int64_t most = 0;
    for (const Offer& offer : offers) most = std::max(most, offer.load[quantity]);
    return most;
  }

  // The fractional knapsack.
  static double LeastToGive(const std::vector<Offers>& jobs, int quantity, int64_t missing) {
    struct Item {
      double cost, amount;
    };
    std::vector<Item> items;
    for (const Offers& offers : jobs) {
      Item item{kNever, static_cast<double>(MostGiven(offers, quantity))};
      for (const Offer& offer : offers) {
        if (offer.load[quantity] > 0) item.cost = std::min(item.cost, offer.cost);
      }
      if (item.amount > 0) items.push_back(item);
    }
    std::sort(items.begin(), items.end(),
              [](const Item& a, const Item& b) { return a.cost * b.amount < b.cost * a.amount; });
    double cost = 0;
    auto left = static_cast<double>(missing);
    for (const Item& item : items) {
      if (left <= 0) break;
      cost += item.cost * std::min(1.0, left / item.amount);
      left -= item.amount;
    }
    return left > 0 ? kNever : cost;
  }

  // Those without which all the others do not free enough.
  static std::vector<const Offers*> Needed(const std::vector<Offers>& jobs, const Limits& limits) {
    std::array<int64_t, kGiven> all{};
    for (const Offers& offers : jobs) {
      for (int q = 0; q < kGiven; ++q) all[q] += MostGiven(offers, q);
    }
    std::vector<const Offers*> needed;
    for (const Offers& offers : jobs) {
      for (int q = 0; q < kGiven; ++q) {
        if (all[q] - MostGiven(offers, q) >= limits.limit[q]) continue;
        needed.push_back(&offers);
        break;
      }
    }
    return needed;
  }

  // All of these leave and together take no more than the limit: with any price on what they take, the
  // cheapest at that price, less the limit's worth, costs no more. The best price is one at which some job
  // would change to another way.
  static double LeastToBear(const std::vector<const Offers*>& needed, int quantity, int64_t limit) {
    int64_t least = 0;
    for (const Offers* offers : needed) {
      const auto by_load = [&](const Offer& a, const Offer& b) {
        return a.load[quantity] < b.load[quantity];
      };
      least += std::min_element(offers->begin(), offers->end(), by_load)->load[quantity];
    }
    if (least > limit) return kNever;
    const auto at = [&](double price) {
      double cost = 0;
      int64_t beyond = -limit;
      for (const Offers* offers : needed) {
        const Offer& offer = CheapestOf(*offers, quantity, price);
        cost += offer.cost;
        beyond += offer.load[quantity];
      }
      return cost + price * static_cast<double>(beyond);
    };
    std::vector<double> prices = {0};
    for (const Offers* offers : needed) {
      for (const Offer& a : *offers) {
        for (const Offer& b : *offers) {
          if (a.cost < b.cost && a.load[quantity] > b.load[quantity])
            prices.push_back((b.cost - a.cost) / static_cast<double>(a.load[quantity] - b.load[quantity]));
        }
      }
    }
    // The bound is concave in the price. Each once: between two equal ones nothing says on which side the
    // best is.
    std::sort(prices.begin(), prices.end());
    prices.erase(std::unique(prices.begin(), prices.end()), prices.end());
    size_t low = 0, high = prices.size() - 1;
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (at(prices[middle]) < at(prices[middle + 1])) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return at(prices[low]);
  }

  const Problem& problem_;
  const Component& component_;
  const int deadlines_;
  std::vector<std::vector<Offers>> on_;  // by node, of the jobs there
};

}  // namespace

std::vector<double> ClearingPrices(const Problem& problem, const Component& component) {
  const Prices prices(problem, component);
  std::vector<double> by_node;
  for (size_t node = 0; node < component.nodes.size(); ++node)
    by_node.push_back(prices.Of(static_cast<int>(node)));
  return by_node;
}

std::vector<bool> CoreNodes(const std::vector<double>& prices, int nodes, std::optional<int64_t> most) {
  std::vector<double> sorted = prices;
  std::sort(sorted.begin(), sorted.end());
  // The cheapest others that have to be freed with a node: all but one of those wanted.
  const size_t others = std::min(sorted.size(), static_cast<size_t>(std::max(0, nodes - 1)));
  const double rest = std::accumulate(sorted.begin(), sorted.begin() + static_cast<long>(others), 0.0);
  const double room = most ? static_cast<double>(*most) * (1 + kRounding) : kNever;
  std::vector<bool> core;
  for (double price : prices) {
    // A node that is one of those cheapest itself stands for one that is dearer.
    const bool is_one = others > 0 && price <= sorted[others - 1];
    const double least = rest + (is_one ? (others < sorted.size() ? sorted[others] : kNever) : price);
    core.push_back(price < kNever && nodes > 0 && (!most || least <= room));
  }
  return core;
}

}  // namespace siding
