// The covering solver against a table that is filled cell by cell.
#include "planner/cover.h"

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "gtest/gtest.h"

namespace siding {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// Least cost by trying every state that can be reached; amounts beyond the demand are as good as the demand.
int64_t Textbook(const std::vector<CoverGroup>& groups, const std::vector<int>& demand) {
  std::map<Amounts, int64_t> least{{Amounts{}, 0}};
  for (const CoverGroup& group : groups) {
    std::map<Amounts, int64_t> next = least;
    for (const auto& [amounts, cost] : least) {
      for (const CoverChoice& choice : group) {
        Amounts sum = amounts;
        for (size_t r = 0; r < demand.size(); ++r) {
          sum[r] += choice.amounts[r];
          if (demand[r] > 0) sum[r] = std::min(sum[r], demand[r]);
        }
        const auto [it, fresh] = next.emplace(sum, cost + choice.cost);
        if (!fresh) it->second = std::min(it->second, cost + choice.cost);
      }
    }
    least = std::move(next);
  }
  int64_t best = kNever;
  for (const auto& [amounts, cost] : least) {
    bool covers = true;
    for (size_t r = 0; r < demand.size(); ++r) covers &= amounts[r] >= demand[r];
    if (covers) best = std::min(best, cost);
  }
  return best;
}

struct Shape {
  int groups, wanted_rows, short_rows;
  int most_cost;  // small: many equal costs
};

class CoverTest : public testing::TestWithParam<Shape> {
 protected:
  int Upto(int n) { return static_cast<int>(random_() % (n + 1)); }

  // Later rows count what earlier ones do and more, as nodes by a later moment do.
  CoverGroup Group(const Shape& shape) {
    CoverGroup group;
    for (int c = 0, choices = 1 + Upto(3); c < choices; ++c) {
      CoverChoice choice;
      int nodes = Upto(3);
      for (int r = 0; r < shape.wanted_rows; ++r) choice.amounts[r] = nodes += Upto(2);
      for (int r = 0; r < shape.short_rows; ++r) choice.amounts[shape.wanted_rows + r] = -Upto(4);
      choice.cost = Upto(shape.most_cost);
      group.push_back(choice);
    }
    return group;
  }

  std::mt19937 random_{7};
};

TEST_P(CoverTest, FindsTheLeastCost) {
  const Shape shape = GetParam();
  int feasible = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<CoverGroup> groups;
    for (int g = 0; g < shape.groups; ++g) groups.push_back(Group(shape));
    std::vector<int> demand;
    for (int r = 0; r < shape.wanted_rows; ++r) demand.push_back(1 + Upto(2 * shape.groups));
    for (int r = 0; r < shape.short_rows; ++r) demand.push_back(-Upto(2 * shape.groups));
    const int64_t expected = Textbook(groups, demand);
    const auto answer = SolveCover(groups, demand);
    ASSERT_TRUE(answer.exact || (!answer.found && shape.short_rows > 1));
    if (!answer.found) {
      ASSERT_EQ(expected, kNever) << "round " << round;
      continue;
    }
    ++feasible;
    ASSERT_EQ(answer.cost, expected) << "round " << round;
    Amounts sum{};
    int64_t cost = 0;
    for (size_t g = 0; g < groups.size(); ++g) {
      if (answer.chosen[g] < 0) continue;
      const CoverChoice& choice = groups[g][answer.chosen[g]];
      cost += choice.cost;
      for (size_t r = 0; r < demand.size(); ++r) sum[r] += choice.amounts[r];
    }
    ASSERT_EQ(cost, answer.cost);
    for (size_t r = 0; r < demand.size(); ++r) ASSERT_GE(sum[r], demand[r]);
  }
  EXPECT_GT(feasible, 50);
}

INSTANTIATE_TEST_SUITE_P(Shapes, CoverTest,
                         testing::Values(Shape{6, 1, 0, 1000}, Shape{10, 1, 1, 1000},
                                         Shape{30, 1, 1, 1000000}, Shape{30, 1, 1, 5}, Shape{30, 1, 1, 0},
                                         Shape{8, 2, 1, 100}, Shape{8, 2, 2, 1000}, Shape{8, 3, 3, 3}));

TEST(Cover, NothingWantedCostsNothing) {
  const auto answer = SolveCover({{{{1}, 5}}}, {0});
  ASSERT_TRUE(answer.found);
  EXPECT_EQ(answer.cost, 0);
  EXPECT_EQ(answer.chosen, std::vector<int>{-1});
}

TEST(Cover, NoGroupsCoverNothing) { EXPECT_FALSE(SolveCover({}, {1}).found); }

TEST(Cover, OfEqualsTheAnswerIsAlwaysTheSame) {
  const std::vector<CoverGroup> groups(20, CoverGroup{{{1, -1}, 3}, {{2, -1}, 6}});
  const auto first = SolveCover(groups, {7, -5}), second = SolveCover(groups, {7, -5});
  ASSERT_TRUE(first.found && second.found);
  EXPECT_EQ(first.chosen, second.chosen);
}

}  // namespace
}  // namespace siding
