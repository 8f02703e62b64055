// How long does the planner take, what does its plan cost, and beside what? For the same clusters in the same
// run: MakePlan as a whole; a plain greedy choice, which shows what exactness is worth (bench/greedy/); the
// integer program solved by CBC (within a time limit); and the textbook's dynamic program over
// jobs x nodes x steps, where its table can be filled at all. Says whether these find the same least cost,
// and fails if a plan breaks a limit. The greedy choice counts bytes to shared storage as they are; all
// others count them in the budget steps, so with coarse steps it may find what costs less.
//
//   planner_bench [--cbc SECONDS] [--only TEXT]
//
// --cbc: how long CBC may take; 60 by default, 0 leaves it out. --only: the cases that have it in their
// names.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "bench/greedy/greedy.h"
#include "bench/milp/milp.h"
#include "planner/options.h"
#include "planner/planner.h"

namespace {

using namespace siding;  // NOLINT: a program of its own

constexpr int64_t kMiB = 1 << 20;
constexpr int kRounds = 15;
// Above this many cells the textbook's table is not filled: at about 1 ns each that is minutes.
constexpr double kMostCells = 1e9;

enum class Kind { kMixed, kAlike, kFrozen, kShared, kGangs, kFrozenGangs };
bool HasGangsOfTwo(Kind kind) { return kind == Kind::kGangs || kind == Kind::kFrozenGangs; }

struct Case {
  const char* name;
  Kind kind;
  int jobs, need, steps, slots, requests;
  int start_in = 30;  // seconds
};

// So many budget steps as a site has that says nothing.
const int kDefault = Policy().budget_steps;

const Case kCases[] = {
    {"mixed", Kind::kMixed, 1000, 512, kDefault, 1, 1},
    {"mixed", Kind::kMixed, 10000, 4096, kDefault, 1, 1},
    {"mixed, coarse steps", Kind::kMixed, 1000, 512, 64, 1, 1},
    {"mixed, coarse steps", Kind::kMixed, 10000, 4096, 256, 1, 1},
    {"all lose the same per node", Kind::kAlike, 1000, 512, kDefault, 1, 1},
    {"all lose the same per node", Kind::kAlike, 10000, 4096, kDefault, 1, 1},
    {"all lose the same per node, coarse steps", Kind::kAlike, 1000, 512, 64, 1, 1},
    {"all can be frozen", Kind::kFrozen, 1000, 512, kDefault, 1, 1},
    {"all can be frozen", Kind::kFrozen, 10000, 4096, kDefault, 1, 1},
    {"four jobs a node", Kind::kShared, 1000, 64, kDefault, 4, 1},
    {"four jobs a node", Kind::kShared, 10000, 512, kDefault, 4, 1},
    {"four jobs a node, coarse steps", Kind::kShared, 1000, 64, 64, 4, 1},
    {"ten a node, every tenth on two nodes", Kind::kGangs, 1000, 8, kDefault, 10, 1},
    {"ten a node, every tenth on two nodes", Kind::kGangs, 10000, 8, kDefault, 10, 1},
    {"ten a node, every tenth on two nodes", Kind::kGangs, 10000, 256, kDefault, 10, 1},
    {"ten a node, every tenth on two nodes, too soon", Kind::kGangs, 10000, 8, kDefault, 10, 1, 2},
    {"ten a node, every tenth on two nodes, all can be frozen", Kind::kFrozenGangs, 10000, 2, kDefault, 10,
     1},
    {"ten a node, every tenth on two nodes, all can be frozen", Kind::kFrozenGangs, 10000, 8, kDefault, 10,
     1},
    {"mixed, three requests", Kind::kMixed, 1000, 512, kDefault, 1, 3},
    {"mixed, three requests", Kind::kMixed, 10000, 4096, kDefault, 1, 3},
};

// The process's CPU time, so that others on the machine do not count; the planner has one thread.
using Ticks = std::clock_t;
double Milliseconds(Ticks start) {
  return 1000.0 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

NodeView MakeNode(size_t n, int slots) {
  NodeView node;
  node.id = NodeId("n" + std::to_string(n));
  node.capacity = node.free = {slots, Bytes{65536 * kMiB}, 0};
  node.ram_available = Bytes{65536 * kMiB};
  node.shared = {{1e9, std::chrono::milliseconds(200)}, {1e9, std::chrono::milliseconds(200)}};
  return node;
}

// Gangs of 1 to 8 whole nodes; single tasks that share nodes; or those and gangs of two, which tie all nodes
// together.
Snapshot MakeSnapshot(const Case& c) {
  std::mt19937 random(1);
  const auto upto = [&](unsigned n) { return static_cast<int>(random() % (n + 1)); };
  Snapshot snapshot;
  snapshot.now = Time(std::chrono::hours(500'000));
  snapshot.shared.bytes_per_second = 20e9 * c.jobs / 1000;
  const size_t nodes = static_cast<size_t>(c.jobs) * 11 / 10 / static_cast<size_t>(c.slots);  // for gangs
  size_t first_with_room = 0;
  const auto add_rank = [&](JobView& job, size_t n) {
    while (n >= snapshot.nodes.size()) snapshot.nodes.push_back(MakeNode(snapshot.nodes.size(), c.slots));
    snapshot.nodes[n].free.slots -= 1;
    job.nodes.push_back(snapshot.nodes[n].id);
    job.memory.push_back(Bytes{(256 + upto(8192)) * kMiB});
    while (first_with_room < snapshot.nodes.size() && snapshot.nodes[first_with_room].free.slots == 0)
      ++first_with_room;
  };
  for (int j = 1; j <= c.jobs; ++j) {
    JobView job;
    job.id = JobId(j);
    job.per_node = {1, Bytes{0}, 0};
    if (HasGangsOfTwo(c.kind) && j % 10 == 0) {
      const size_t first = first_with_room;
      add_rank(job, first);
      size_t other = random() % nodes;
      while (other == first || (other < snapshot.nodes.size() && snapshot.nodes[other].free.slots == 0))
        ++other;
      if (other < nodes) add_rank(job, other);
    } else {
      for (int rank = 0, ranks = c.slots > 1 ? 1 : 1 + upto(7); rank < ranks; ++rank)
        add_rank(job, first_with_room);
    }
    // A third may be killed, a third dumped, a third both.
    if (j % 3 != 0) job.methods.Add(Method::kCheckpoint);
    if (j % 3 != 1) job.methods.Add(Method::kKill);
    if (c.kind == Kind::kFrozen || c.kind == Kind::kFrozenGangs) job.methods.Add(Method::kSuspend);
    job.running_since = snapshot.now - std::chrono::hours(2);
    job.durable_at = snapshot.now - std::chrono::seconds(c.kind == Kind::kAlike ? 1800 : 1 + upto(3600));
    job.kill_grace = std::chrono::seconds(10);
    snapshot.jobs.push_back(std::move(job));
  }
  return snapshot;
}

std::vector<Request> MakeRequests(const Case& c, const Snapshot& snapshot) {
  std::vector<Request> requests;
  requests.reserve(c.requests);
  for (int i = 0; i < c.requests; ++i) {
    requests.push_back({JobId(c.jobs + 1 + i),
                        c.need / c.requests,
                        {c.slots, Bytes{0}, 0},
                        snapshot.now + std::chrono::seconds(c.start_in + 30 * i)});
  }
  return requests;
}

// Least cost to free at least n nodes with at most b steps, by filling the whole table. Jobs have their nodes
// to themselves.
double Textbook(const Snapshot& snapshot, const Request& request, const Policy& policy) {
  const Duration within = request.start_by - policy.margin - snapshot.now;
  const double step = snapshot.shared.bytes_per_second * ToSeconds(within) / policy.budget_steps;
  const int need = request.nodes, steps = policy.budget_steps, width = steps + 1;
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 2;
  std::vector<int64_t> least(static_cast<size_t>(need + 1) * width, kNever);
  std::fill_n(least.begin(), width, 0);
  for (const Candidate& candidate : MakeCandidates(snapshot, request, policy)) {
    const int nodes = static_cast<int>(candidate.job->nodes.size());
    for (int n = need; n > 0; --n) {
      for (int b = steps; b >= 0; --b) {
        int64_t& cell = least[static_cast<size_t>(n) * width + b];
        for (const Option& option : candidate.options) {
          const int taken =
              static_cast<int>(std::ceil(static_cast<double>(option.shared_bytes.value) / step));
          if (option.release > within || taken > b) continue;
          cell = std::min(
              cell, least[static_cast<size_t>(std::max(0, n - nodes)) * width + b - taken] + option.cost_ms);
        }
      }
    }
  }
  return static_cast<double>(least.back()) / 1000;
}

void Report(const char* what, double ms, double cost, const char* note = "") {
  std::printf("  %-28s %10.1f ms   cost %14.3f node-seconds%s\n", what, ms, cost, note);
}

bool IsSound(const char* what, const Snapshot& snapshot, const std::vector<Request>& requests,
             const Policy& policy, const std::vector<Plan>& plans) {
  const std::string wrong = WhatIsWrong(snapshot, requests, policy, plans);
  if (!wrong.empty()) std::printf("  %s BREAKS A LIMIT: %s\n", what, wrong.c_str());
  return wrong.empty();
}

double CostOf(const std::vector<Plan>& plans) {
  double cost = 0;
  for (const Plan& plan : plans) cost += plan.cost_node_seconds;
  return cost;
}

// Calls `make` kRounds times. Milliseconds, sorted, and the plans of the last call.
template <class Make>
std::pair<std::vector<double>, std::vector<Plan>> Measure(const Make& make) {
  std::vector<double> ms;
  std::vector<Plan> plans;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::clock();
    plans = make();
    ms.push_back(Milliseconds(start));
  }
  std::sort(ms.begin(), ms.end());
  return {std::move(ms), std::move(plans)};
}

// `exact`: what the planner's plan costs.
bool RunGreedy(const Snapshot& snapshot, const std::vector<Request>& requests, const Policy& policy,
               double exact) {
  const auto [ms, plans] = Measure([&] { return MakeGreedyPlans(snapshot, requests, policy); });
  if (!plans.front().feasible) {
    std::printf("  %-28s %10.1f ms   finds nothing\n", "greedy, median of 15", ms[kRounds / 2]);
    return true;
  }
  const double cost = CostOf(plans);
  char relative[64] = "";
  if (exact > 0) std::snprintf(relative, sizeof relative, "  (%+.1f %%)", 100 * (cost / exact - 1));
  Report("greedy, median of 15", ms[kRounds / 2], cost, relative);
  return IsSound("greedy", snapshot, requests, policy, plans);
}

bool Run(const Case& c, int cbc_seconds) {
  Policy policy;
  policy.budget_steps = c.steps;
  const Snapshot snapshot = MakeSnapshot(c);
  const std::vector<Request> requests = MakeRequests(c, snapshot);
  std::printf("%s: %d jobs on %zu nodes, %d nodes needed, %d budget steps\n", c.name, c.jobs,
              snapshot.nodes.size(), c.need, c.steps);
  const auto [ms, plans] = Measure([&] { return MakePlans(snapshot, requests, policy); });
  double cost = 0;
  bool exact = true;
  size_t victims = 0;
  for (const Plan& plan : plans) {
    cost += plan.cost_node_seconds;
    exact &= plan.exact && plan.feasible;
    victims += plan.steps.size();
  }
  Report("MakePlan, median of 15", ms[kRounds / 2], cost, exact ? "" : "  (not proven the least)");
  std::printf("  %-28s %10.1f ms   %zu victims\n", "MakePlan, most", ms.back(), victims);
  if (!plans.front().feasible) {
    std::printf("  refused: %s; the earliest start is in %.2f s\n", plans.front().refusal.c_str(),
                plans.front().earliest ? ToSeconds(*plans.front().earliest - snapshot.now) : -1.0);
    return plans.front().earliest.has_value();
  }
  const bool good =
      RunGreedy(snapshot, requests, policy, cost) && IsSound("MakePlan", snapshot, requests, policy, plans);
  if (c.requests > 1) return good;
  bool same = true;
  const double cells = double(c.jobs) * c.need * (c.steps + 1);
  if (c.slots == 1 && cells <= kMostCells) {
    const auto start = std::clock();
    const double plain = Textbook(snapshot, requests[0], policy);
    Report("textbook table, no way back", Milliseconds(start), plain);
    same &= std::abs(plain - cost) < 0.01;
  } else {
    std::printf("  %-28s not run: %.1e cells%s\n", "textbook table", cells,
                c.slots == 1 ? "" : ", and its jobs must not share nodes");
  }
  if (cbc_seconds > 0) {
    const MilpAnswer milp = SolveWithCbc(snapshot, requests[0], policy, cbc_seconds);
    // What it has when it is stopped may be a bound and no selection.
    Report("CBC", milp.took_seconds * 1000, milp.cost_seconds,
           milp.proven ? "" : "  (stopped by the time limit, proves nothing)");
    same &= !milp.proven || std::abs(milp.cost_seconds - cost) < 0.01 + 1e-6 * cost;
  }
  std::printf("  costs agree: %s\n", same ? "yes" : exact ? "NO" : "not within what was proven");
  return good && (same || !exact);
}

}  // namespace

int main(int argc, char** argv) {
  int cbc_seconds = 60;
  std::string only;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    if (i + 1 < argc && option == "--cbc") {
      cbc_seconds = std::atoi(argv[i + 1]);
    } else if (i + 1 < argc && option == "--only") {
      only = argv[i + 1];
    } else {
      std::fprintf(stderr, "usage: planner_bench [--cbc SECONDS] [--only TEXT]\n");
      return 2;
    }
  }
  if (FindCbc().empty()) cbc_seconds = 0;
  bool good = true;
  for (const Case& c : kCases) {
    if (std::string_view(c.name).find(only) != std::string_view::npos) good &= Run(c, cbc_seconds);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("peak memory of this process: %.0f MiB\n", static_cast<double>(usage.ru_maxrss) / 1024);
  return good ? 0 : 1;
}
