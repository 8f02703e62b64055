#include "planner/core.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "planner/cover.h"
#include "planner/frontier.h"
#include "planner/greedy.h"
#include "planner/nodes.h"
#include "planner/planner.h"
#include "planner/random_cluster.h"

namespace siding::test {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr size_t kAlways = 0, kNot = std::numeric_limits<size_t>::max();

Budget BudgetOf(const Instance& x, Duration during) {
  const double bytes = x.snapshot.shared.bytes_per_second * ToSeconds(during) -
                       static_cast<double>(x.snapshot.shared.in_flight.value);
  return {x.policy.budget_steps, std::max(0.0, bytes) / x.policy.budget_steps};
}

Problem ProblemOf(const Instance& x, const std::vector<Candidate>& candidates) {
  const Duration within = std::max(Duration(0), x.request.start_by - x.policy.margin - kNow);
  return {x.snapshot,
          candidates,
          x.request.per_node,
          {x.request.id},
          kNow,
          {{within, x.request.nodes, BudgetOf(x, within)}},
          {x.policy.budget_steps, 0}};
}

struct Posed {
  explicit Posed(Instance instance) : x(std::move(instance)) {}
  Posed(const Posed&) = delete;

  const Instance x;
  const std::vector<Candidate> candidates = MakeCandidates(x.snapshot, x.request, x.policy);
  const Problem problem = ProblemOf(x, candidates);
};

// More nodes and jobs, some of which have two ranks on one node, or use only the first of their ways that is
// in time; the request is announced, and its nodes are wanted by up to three deadlines.
class Knotted {
 public:
  explicit Knotted(unsigned seed) : random_(seed) {}

  Instance Make() {
    Instance x = RandomInstance(random_, 2 + Upto(2), 6, 9);
    x.policy.classes.resize(1);
    x.policy.classes[0].strict = true;
    for (JobView& job : x.snapshot.jobs) {
      if (Upto(3) == 0) job.job_class = 0;
      if (job.id.value() % 3 == 0) job.timer = "it has a timer";
      NodeView& node = x.snapshot.nodes[Upto(static_cast<int>(x.snapshot.nodes.size()) - 1)];
      if (std::find(job.nodes.begin(), job.nodes.end(), node.id) == job.nodes.end() ||
          !node.free.Covers(job.per_node))
        continue;
      node.free -= job.per_node;
      job.nodes.push_back(node.id);
      job.memory.push_back(job.memory.front());
    }
    x.request.not_before = kNow + std::chrono::seconds(Upto(1) * Upto(20));
    return x;
  }

  Problem Ask(const Instance& x, const std::vector<Candidate>& candidates) {
    Problem problem = ProblemOf(x, candidates);
    problem.arrival = x.request.not_before;
    problem.early = BudgetOf(x, problem.arrival - kNow);
    problem.deadlines.clear();
    Duration within{0};
    int nodes = 0;
    for (int k = Upto(2); k >= 0; --k) {
      within += std::chrono::milliseconds(Upto(8000));
      nodes += 1 + Upto(1);
      problem.deadlines.push_back({within, nodes, BudgetOf(x, within)});
    }
    return problem;
  }

  int Upto(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n + 1)); }

 private:
  std::mt19937 random_;
};

std::optional<int64_t> LeastCost(const Frontier& frontier) {
  const CoverAnswer answer = SolveCover(GroupsOf(frontier), frontier.demand);
  if (!answer.found) return std::nullopt;
  return answer.cost;
}
Frontier FrontierOf(const Problem& problem, size_t large) {
  Effort effort;
  return MakeFrontier(problem, effort, large);
}

// In node-milliseconds. Of plans that lose as little, not all are looked at.
std::optional<int64_t> LeastLoss(const Problem& problem, const Frontier& frontier) {
  const Solution solution = Solve(frontier);
  if (!solution.found) return std::nullopt;
  return std::accumulate(solution.victims.begin(), solution.victims.end(), int64_t{0},
                         [&](int64_t sum, const Victim& victim) {
                           return sum + problem.candidates[victim.candidate].options[victim.option].cost_ms;
                         });
}

TEST(CoreTest, LeavingOutTheOthersLosesNothing) {
  std::mt19937 random(1);
  int feasible = 0, smaller = 0;
  for (int i = 0; i < 6000; ++i) {
    SCOPED_TRACE(i);
    const Posed posed(RandomInstance(random, 1 + i % 4));
    const Problem& problem = posed.problem;
    const Frontier all = FrontierOf(problem, kNot), core = FrontierOf(problem, kAlways);
    ASSERT_EQ(LeastLoss(problem, core), LeastLoss(problem, all));
    if (LeastCost(all).value_or(0) == 0) continue;
    ++feasible;
    smaller += core.groups.size() < all.groups.size();
  }
  EXPECT_GT(feasible, 1000);
  EXPECT_GT(smaller, 100);
}

TEST(CoreTest, NorDoesItWithSeveralDeadlinesAndImagesInAdvance) {
  Knotted knotted(4);
  int feasible = 0, smaller = 0, quick = 0;
  for (int i = 0; i < 6000; ++i) {
    SCOPED_TRACE(i);
    const Instance x = knotted.Make();
    const std::vector<Candidate> candidates = MakeCandidates(x.snapshot, x.request, x.policy);
    const Problem problem = knotted.Ask(x, candidates);
    const Frontier all = FrontierOf(problem, kNot), core = FrontierOf(problem, kAlways);
    ASSERT_TRUE(all.exact && core.exact);
    const auto least = LeastCost(all);
    ASSERT_EQ(LeastLoss(problem, core), LeastLoss(problem, all));
    Effort effort;
    ASSERT_EQ(CanMeetDemand(problem, effort), least.has_value());
    if (!least || *least == 0) continue;
    ++feasible;
    smaller += core.groups.size() < all.groups.size();
    if (!core.known) continue;
    ++quick;
    ASSERT_GE(core.known->cover.cost, *least);
    const auto free = FreeNodes(problem, core.known->victims);
    for (size_t k = 0; k < free.size(); ++k)
      ASSERT_GE(static_cast<int>(free[k].size()), problem.deadlines[k].nodes);
  }
  EXPECT_GT(feasible, 1000);
  EXPECT_GT(smaller, 100);
  EXPECT_GT(quick, feasible / 2);
}

// Of plans that lose as little, too, wherever fewer than so many depend on one another.
TEST(CoreTest, WhereFewAreTiedTogetherTheLeastCostIsFoundToTheLastVictim) {
  std::mt19937 random(7);
  int found = 0;
  for (int i = 0; i < 3000; ++i) {
    SCOPED_TRACE(i);
    const Posed posed(RandomInstance(random, 1 + i % 4));
    const Frontier core = FrontierOf(posed.problem, 2);
    const auto cost = LeastCost(core);
    if (!core.known || !cost || *cost > core.known->cover.cost) continue;
    ++found;
    ASSERT_EQ(cost, LeastCost(FrontierOf(posed.problem, kNot)));
  }
  EXPECT_GT(found, 100);
}

TEST(CoreTest, WhatIsFoundQuicklyIsNoBetterThanTheBest) {
  std::mt19937 random(2);
  int found = 0, best = 0;
  for (int i = 0; i < 3000; ++i) {
    SCOPED_TRACE(i);
    const Posed posed(RandomInstance(random, 1 + i % 4));
    const Problem& problem = posed.problem;
    const auto known = FrontierOf(problem, kAlways).known;
    if (!known) continue;
    const auto least = LeastCost(FrontierOf(problem, kNot));
    ASSERT_TRUE(least);
    ASSERT_GE(known->cover.cost, *least);
    ASSERT_GE(static_cast<int>(FreeNodes(problem, known->victims).back().size()), posed.x.request.nodes);
    ++found;
    best += known->cover.cost == *least;
  }
  EXPECT_GT(found, 500);
  EXPECT_GT(best, found / 2);
}

TEST(CoreTest, WhatCanBeMetIsMet) {
  std::mt19937 random(3);
  int yes = 0, no = 0;
  for (int i = 0; i < 3000; ++i) {
    SCOPED_TRACE(i);
    const Posed posed(RandomInstance(random, 1 + i % 4));
    Effort effort;
    const auto can = CanMeetDemand(posed.problem, effort);
    ASSERT_EQ(can, LeastCost(FrontierOf(posed.problem, kNot)).has_value());
    (*can ? yes : no) += 1;
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

// Jobs of one slot and 100 MiB each on one node, of which only one finds room on the local disk; killing two
// of them is dearer than killing the others.
TEST(CoreTest, APriceIsTheBestBoundAlsoWhereJobsAreAlike) {
  Snapshot snapshot = MakeSnapshot(1, {});
  snapshot.nodes[0].capacity.slots = 5;
  snapshot.nodes[0].local_disk_free = Bytes{100 * kMiB};
  snapshot.shared.bytes_per_second = 0;
  for (int j = 0; j < 5; ++j) {
    JobView job = MakeJob(j + 1, {0}, {});
    job.methods.Add(Method::kCheckpoint);
    job.methods.Add(Method::kKill);
    if (j >= 3) job.durable_at -= std::chrono::seconds(1000);
    snapshot.jobs.push_back(job);
  }
  Request request = MakeRequest(1);
  request.per_node.slots = 5;
  const std::vector<Candidate> candidates = MakeCandidates(snapshot, request, NoMargin());
  const Problem problem{snapshot,     candidates, request.per_node,
                        {request.id}, kNow,       {{std::chrono::seconds(60), 1, {1, 0}}},
                        {1, 0}};
  Component component;
  component.nodes = {0};
  component.limits = {Nodes(problem).LimitsOf(0, 0)};
  double dump = 0, kills = 0;
  for (int c = 0; c < 5; ++c) {
    Member member{c, {0}, {}};
    ASSERT_EQ(candidates[c].options.size(), 2u);
    for (int o = 0; o < 2; ++o) {
      CoverChoice charge;
      charge.cost = candidates[c].options[o].cost_ms;
      member.alternatives.push_back({{c, o, 0}, charge});
      const bool kill = candidates[c].options[o].method == Method::kKill;
      if (c < 4 && kill) kills += static_cast<double>(charge.cost);
      if (c == 4 && !kill) dump = static_cast<double>(charge.cost);
    }
    component.members.push_back(member);
  }
  EXPECT_DOUBLE_EQ(ClearingPrices(problem, component).front(), kills + dump);
}

// Each job on its own node and the next: the first and the last cannot be freed, and all others can.
TEST(CoreTest, ARefusalCountsAllThatCanBeFreedHoweverMany) {
  const int nodes = 1300;
  Snapshot snapshot = MakeSnapshot(nodes, {});
  for (NodeView& node : snapshot.nodes) node.capacity.slots = 2;
  for (int j = 0; j < nodes; ++j) {
    JobView job = MakeJob(j + 1, j + 1 < nodes ? std::vector<int>{j, j + 1} : std::vector<int>{j}, {});
    if (j + 1 < nodes) job.methods.Add(Method::kKill);
    job.durable_at -= std::chrono::seconds(j % 100);
    snapshot.jobs.push_back(std::move(job));
  }
  Request request = MakeRequest(nodes);
  request.per_node.slots = 2;
  snapshot.nodes[0].free.slots = 1;
  const Plan plan = MakePlan(snapshot, request, NoMargin());
  EXPECT_FALSE(plan.feasible);
  EXPECT_EQ(
      plan.refusal,
      "only 1299 of 1300 nodes can be free by then, nor later: not all the jobs in the way can be preempted; "
      "in the way: job 1300 (is not preemptible)");
}

// Many jobs on two nodes each, some of which cannot be told apart by what they cost.
Instance Tangled(std::mt19937& random) {
  const auto upto = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n + 1)); };
  Instance x;
  x.snapshot = MakeSnapshot(20, {});
  for (NodeView& node : x.snapshot.nodes) {
    node.capacity.slots = node.free.slots = 4;
    node.local_disk_free = Bytes{100 * upto(3) * kMiB};
  }
  for (int j = 1; j <= 45; ++j) {
    const int one = upto(19), other = (one + 1 + upto(18)) % 20;
    JobView job = MakeJob(j, {one, other}, {});
    for (Method method : {Method::kCheckpoint, Method::kKill}) {
      if (upto(4) > 0) job.methods.Add(method);
    }
    job.durable_at = kNow - std::chrono::seconds(10 * upto(9));
    for (int n : {one, other}) --x.snapshot.nodes[n].free.slots;
    if (x.snapshot.nodes[one].free.slots >= 0 && x.snapshot.nodes[other].free.slots >= 0) {
      x.snapshot.jobs.push_back(std::move(job));
    } else {
      for (int n : {one, other}) ++x.snapshot.nodes[n].free.slots;
    }
  }
  x.request = MakeRequest(1 + upto(5));
  x.request.per_node.slots = 4;
  return x;
}

// A ring of jobs on two nodes each.
TEST(CoreTest, WhereNothingIsLostNobodyLooksForFewerVictims) {
  const int nodes = 200;
  Snapshot snapshot = MakeSnapshot(nodes, {});
  for (NodeView& node : snapshot.nodes) node.capacity.slots = 2;
  for (int j = 0; j < nodes; ++j)
    snapshot.jobs.push_back(MakeJob(j + 1, {j, (j + 1) % nodes}, {Method::kSuspend}));
  Instance x{snapshot, MakeRequest(5), NoMargin()};
  x.request.per_node.slots = 2;
  const Posed posed(x);
  const Frontier frontier = FrontierOf(posed.problem, kLargeComponent);
  EXPECT_TRUE(frontier.known);
  EXPECT_TRUE(frontier.groups.empty());
  const Plan plan = MakePlan(x.snapshot, x.request, x.policy);
  EXPECT_TRUE(plan.feasible);
  EXPECT_TRUE(plan.exact);
  EXPECT_EQ(plan.cost_node_seconds, 0);
}

TEST(CoreTest, WithoutEffortThereIsWhatIsFoundGreedily) {
  std::mt19937 random(6);
  int found = 0, cut = 0;
  for (int i = 0; i < 40; ++i) {
    SCOPED_TRACE(i);
    const Posed posed(Tangled(random));
    Effort none{0};
    const Frontier frontier = MakeFrontier(posed.problem, none, kNot);
    cut += !frontier.exact;
    found += LeastCost(frontier).has_value();
  }
  EXPECT_GT(cut, 30);
  EXPECT_GT(found, 20);
}

TEST(CoreTest, TheOrderOfATangledSnapshotDoesNotMatter) {
  std::mt19937 random(5);
  int found = 0, exact = 0;
  for (int i = 0; i < 40; ++i) {
    SCOPED_TRACE(i);
    Instance x = Tangled(random);
    const Plan plan = MakePlan(x.snapshot, x.request, x.policy);
    found += FrontierOf(Posed(x).problem, kLargeComponent).known.has_value();
    std::shuffle(x.snapshot.jobs.begin(), x.snapshot.jobs.end(), random);
    std::shuffle(x.snapshot.nodes.begin(), x.snapshot.nodes.end(), random);
    const Plan again = MakePlan(x.snapshot, x.request, x.policy);
    exact += plan.exact;
    ASSERT_EQ(plan.refusal, again.refusal);
    ASSERT_EQ(plan.earliest, again.earliest);
    ASSERT_EQ(plan.nodes, again.nodes);
    ASSERT_EQ(plan.steps.size(), again.steps.size());
    for (size_t s = 0; s < plan.steps.size(); ++s) {
      ASSERT_EQ(plan.steps[s].job, again.steps[s].job);
      ASSERT_EQ(plan.steps[s].method, again.steps[s].method);
    }
  }
  EXPECT_GT(found, 20);
  EXPECT_GT(exact, 30);  // without leaving out nodes it is hardly ever
}

}  // namespace
}  // namespace siding::test
