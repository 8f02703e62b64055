#include "planner/core.h"

#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "planner/cover.h"
#include "planner/frontier.h"
#include "planner/greedy.h"
#include "planner/nodes.h"
#include "planner/random_cluster.h"

namespace siding::test {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr size_t kAlways = 0, kNot = std::numeric_limits<size_t>::max();

Problem ProblemOf(const Instance& x, const std::vector<Candidate>& candidates) {
  const Duration within = std::max(Duration(0), x.request.start_by - x.policy.margin - kNow);
  const double bytes = x.snapshot.shared.bytes_per_second * ToSeconds(within) -
                       static_cast<double>(x.snapshot.shared.in_flight.value);
  const int steps = x.policy.budget_steps;
  return {x.snapshot,     candidates, x.request.per_node,
          {x.request.id}, kNow,       {{within, x.request.nodes, {steps, std::max(0.0, bytes) / steps}}},
          {steps, 0}};
}

std::optional<int64_t> LeastCost(const Problem& problem, size_t tangled) {
  const Frontier frontier = MakeFrontier(problem, tangled);
  std::vector<CoverGroup> groups;
  for (const auto& choices : frontier.groups) {
    CoverGroup& group = groups.emplace_back();
    for (const FrontierChoice& choice : choices) group.push_back(choice.cover);
  }
  const auto answer = SolveCover(groups, frontier.demand);
  if (!answer) return std::nullopt;
  return answer->cost;
}

TEST(CoreTest, LeavingOutTheOthersLosesNothing) {
  std::mt19937 random(1);
  int feasible = 0, smaller = 0;
  for (int i = 0; i < 6000; ++i) {
    SCOPED_TRACE(i);
    const Instance x = RandomInstance(random, 1 + i % 4);
    const std::vector<Candidate> candidates = MakeCandidates(x.snapshot, x.request, x.policy);
    const Problem problem = ProblemOf(x, candidates);
    const auto least = LeastCost(problem, kNot);
    ASSERT_EQ(LeastCost(problem, kAlways), least);
    if (!least || *least == 0) continue;
    ++feasible;
    smaller += MakeFrontier(problem, kAlways).groups.size() < MakeFrontier(problem, kNot).groups.size();
  }
  EXPECT_GT(feasible, 1000);
  EXPECT_GT(smaller, 100);
}

TEST(CoreTest, WhatIsFoundQuicklyIsNoBetterThanTheBest) {
  std::mt19937 random(2);
  int found = 0, best = 0;
  for (int i = 0; i < 3000; ++i) {
    SCOPED_TRACE(i);
    const Instance x = RandomInstance(random, 1 + i % 4);
    const std::vector<Candidate> candidates = MakeCandidates(x.snapshot, x.request, x.policy);
    const Problem problem = ProblemOf(x, candidates);
    const auto known = MakeFrontier(problem, kAlways).known;
    if (!known) continue;
    const auto least = LeastCost(problem, kNot);
    ASSERT_TRUE(least);
    ASSERT_GE(known->cover.cost, *least);
    ASSERT_GE(static_cast<int>(FreeNodes(problem, known->victims).back().size()), x.request.nodes);
    ++found;
    best += known->cover.cost == *least;
  }
  EXPECT_GT(found, 500);
  EXPECT_GT(best, found / 2);
}

TEST(CoreTest, WhatIsPlainIsTrue) {
  std::mt19937 random(3);
  int yes = 0, no = 0;
  for (int i = 0; i < 3000; ++i) {
    SCOPED_TRACE(i);
    const Instance x = RandomInstance(random, 1 + i % 4);
    const std::vector<Candidate> candidates = MakeCandidates(x.snapshot, x.request, x.policy);
    const Problem problem = ProblemOf(x, candidates);
    const auto plain = CanMeetDemand(problem);
    if (!plain) continue;
    ASSERT_EQ(*plain, LeastCost(problem, kNot).has_value());
    (*plain ? yes : no) += 1;
  }
  EXPECT_GT(yes, 500);
  EXPECT_GT(no, 500);
}

TEST(CoreTest, ANodeThatCannotBeFreedIsNotInTheCore) {
  EXPECT_EQ(CoreNodes({1, kNever}, 1, std::nullopt), (std::vector<bool>{true, false}));
}

TEST(CoreTest, WithTheCheapestOthersANodeMayCostWhatIsKnownButNotMore) {
  EXPECT_EQ(CoreNodes({10, 20, 30, 31}, 2, 40), (std::vector<bool>{true, true, true, false}));
}

TEST(CoreTest, WhoIsOneOfTheCheapestStandsForItself) {
  EXPECT_EQ(CoreNodes({10, 20, 1000}, 2, 30), (std::vector<bool>{true, true, false}));
}

TEST(CoreTest, NoNodeIsNeededWhereThereAreEnough) {
  EXPECT_EQ(CoreNodes({10, 20}, 0, 0), (std::vector<bool>{false, false}));
}

}  // namespace
}  // namespace siding::test
