// The bound as a function of the prices is concave and made of flat pieces, with a slope that comes for free
// (demand less what is delivered), so any cutting-plane method finds its top. The ellipsoid method (Yudin and
// Nemirovski 1976; with deep cuts: Bland, Goldfarb, Todd, "The ellipsoid method: a survey", 1981) needs
// twenty lines, no linear programs and no tuning, and with at most kMostRows prices it is quick.
#include "planner/dual.h"

#include <algorithm>
#include <cmath>

namespace siding {
namespace {

constexpr double kPrecision = 1e-7;
constexpr int kMostCutsPerRow = 150;

struct Point {
  double value = 0;
  std::vector<double> slope;
};

Point Evaluate(const CoverTable& table, const std::vector<double>& prices, std::vector<int>* best) {
  Point point;
  point.slope = table.demand;
  for (int r = 0; r < table.rows; ++r) point.value += prices[r] * table.demand[r];
  for (int g = 0; g < table.groups(); ++g) {
    double least = 0;  // of "none"
    int at = table.begin[g];
    for (int c = at + 1; c < table.begin[g + 1]; ++c) {
      double reduced = table.cost[c];
      for (int r = 0; r < table.rows; ++r) reduced -= prices[r] * table.amount[r][c];
      if (reduced < least) {
        least = reduced;
        at = c;
      }
    }
    point.value += least;
    for (int r = 0; r < table.rows; ++r) point.slope[r] -= table.amount[r][at];
    if (best != nullptr) (*best)[g] = at;
  }
  return point;
}

// The set in which the best prices lie: {x : (x - center)' shape^-1 (x - center) <= 1}.
class Ellipsoid {
 public:
  // Around the box from 0 to `most`.
  explicit Ellipsoid(const std::vector<double>& most)
      : n_(static_cast<int>(most.size())), center_(most), shape_(most.size() * most.size(), 0.0) {
    for (int i = 0; i < n_; ++i) {
      center_[i] = most[i] / 2;
      shape_[i * n_ + i] = n_ * most[i] * most[i] / 4;
    }
  }

  const std::vector<double>& center() const { return center_; }
  // How far the set reaches from its center in this direction, times the direction's length.
  double Reach(const std::vector<double>& direction) const {
    double sum = 0;
    for (int i = 0; i < n_; ++i) {
      for (int j = 0; j < n_; ++j) sum += direction[i] * shape_[i * n_ + j] * direction[j];
    }
    return std::sqrt(std::max(0.0, sum));
  }

  // Keeps the part where normal * (x - center) <= -depth * Reach(normal), 0 <= depth < 1.
  void Cut(const std::vector<double>& normal, double depth) {
    const double reach = Reach(normal);
    std::vector<double> step(n_, 0.0);
    for (int i = 0; i < n_; ++i) {
      for (int j = 0; j < n_; ++j) step[i] += shape_[i * n_ + j] * normal[j] / reach;
    }
    const double n = n_;
    for (int i = 0; i < n_; ++i) center_[i] -= (1 + n * depth) / (n + 1) * step[i];
    if (n_ == 1) {  // an interval; the general formula divides nothing by nothing
      shape_[0] *= (1 - depth) * (1 - depth) / 4;
      return;
    }
    const double shrink = 2 * (1 + n * depth) / ((n + 1) * (1 + depth));
    const double grow = n * n / (n * n - 1) * (1 - depth * depth);
    for (int i = 0; i < n_; ++i) {
      for (int j = 0; j < n_; ++j) {
        shape_[i * n_ + j] = grow * (shape_[i * n_ + j] - shrink * step[i] * step[j]);
      }
    }
  }

 private:
  const int n_;
  std::vector<double> center_;
  std::vector<double> shape_;
};

// Dearer than the dearest choice per unit need not be tried; ten times that leaves room for a row that is
// dear because another is.
std::vector<double> MostPrices(const CoverTable& table) {
  std::vector<double> most(table.rows, 1.0);
  double dearest = 1;
  for (double cost : table.cost) dearest = std::max(dearest, cost);
  for (int r = 0; r < table.rows; ++r) {
    double smallest = 0;
    for (double amount : table.amount[r]) {
      if (amount != 0) smallest = smallest == 0 ? std::abs(amount) : std::min(smallest, std::abs(amount));
    }
    if (smallest > 0) most[r] = 10 * dearest / smallest;
  }
  return most;
}

}  // namespace

CoverTable::CoverTable(const std::vector<CoverGroup>& groups, const std::vector<int>& demands)
    : rows(static_cast<int>(demands.size())), demand(demands.begin(), demands.end()) {
  for (const CoverGroup& group : groups) {
    begin.push_back(static_cast<int>(choices.size()));
    choices.emplace_back();
    choices.insert(choices.end(), group.begin(), group.end());
  }
  begin.push_back(static_cast<int>(choices.size()));
  for (const CoverChoice& choice : choices) {
    cost.push_back(static_cast<double>(choice.cost));
    for (int r = 0; r < rows; ++r) amount[r].push_back(choice.amounts[r]);
  }
}

Priced MaximizeDual(const CoverTable& table) {
  Ellipsoid where(MostPrices(table));
  Priced top;
  top.prices.assign(table.rows, 0.0);
  top.bound = Evaluate(table, top.prices, nullptr).value;
  for (int cuts = 0; cuts < kMostCutsPerRow * table.rows; ++cuts) {
    const std::vector<double>& prices = where.center();
    std::vector<double> normal(table.rows, 0.0);
    const auto negative = std::min_element(prices.begin(), prices.end());
    double depth;
    if (*negative < 0) {
      normal[negative - prices.begin()] = -1;
      depth = -*negative / where.Reach(normal);
    } else {
      const Point point = Evaluate(table, prices, nullptr);
      for (int r = 0; r < table.rows; ++r) normal[r] = -point.slope[r];
      const double reach = where.Reach(normal);
      if (point.value > top.bound) {
        top.bound = point.value;
        top.prices = prices;
      }
      if (reach <= kPrecision * std::max(1.0, top.bound)) break;
      depth = (top.bound - point.value) / reach;
    }
    if (!(depth < 0.999)) break;  // nothing better is left
    where.Cut(normal, depth);
  }
  top.best.resize(table.groups());
  top.bound = Evaluate(table, top.prices, &top.best).value;
  return top;
}

}  // namespace siding
