// How long does the planner take, and what does its dynamic program gain over the textbook's loops? Prints,
// for the same cluster in the same run: the whole of MakePlan, its knapsack alone, and a plain dp over the
// same groups (clear loops, one table for every group), and whether all three find the same least loss.
//
//   planner_bench [JOBS [NODES_NEEDED [STEPS [ROUNDS]]]]     default: 1000 512 64 15
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "planner/knapsack.h"
#include "planner/options.h"
#include "planner/planner.h"

namespace {

using siding::Bytes;
using siding::KnapsackChoice;
using siding::KnapsackGroup;
using siding::Method;

constexpr int64_t kMiB = 1 << 20;

double Milliseconds(const std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// Gangs of 1 to 8 whole nodes. A third may be killed, a third dumped, a third both; none suspended, as the
// nodes' RAM has no room, so that every victim costs something and the shared budget binds.
siding::Snapshot MakeSnapshot(int jobs) {
  std::mt19937 random(1);
  const auto upto = [&](unsigned n) { return static_cast<int>(random() % (n + 1)); };
  siding::Snapshot snapshot;
  snapshot.now = siding::Time(std::chrono::hours(500'000));
  snapshot.shared.bytes_per_second = 20e9;
  for (int j = 1; j <= jobs; ++j) {
    siding::JobView job;
    job.id = siding::JobId(j);
    job.per_node = {1, Bytes{0}, 0};
    const int ranks = 1 + upto(7);
    for (int rank = 0; rank < ranks; ++rank) {
      siding::NodeView node;
      node.id = siding::NodeId("n" + std::to_string(snapshot.nodes.size()));
      node.capacity = {1, Bytes{64 * 1024 * kMiB}, 0};
      node.free = {0, Bytes{64 * 1024 * kMiB}, 0};
      node.shared = {{1e9, std::chrono::milliseconds(200)}, {1e9, std::chrono::milliseconds(200)}};
      job.nodes.push_back(node.id);
      job.memory.push_back(Bytes{(256 + upto(8192)) * kMiB});
      snapshot.nodes.push_back(std::move(node));
    }
    if (j % 3 != 0) job.methods.Add(Method::kCheckpoint);
    if (j % 3 != 1) job.methods.Add(Method::kKill);
    job.running_since = snapshot.now - std::chrono::hours(2);
    job.durable_at = snapshot.now - std::chrono::seconds(1 + upto(3600));
    job.kill_grace = std::chrono::seconds(10);
    snapshot.jobs.push_back(std::move(job));
  }
  return snapshot;
}

// The knapsack that MakePlan has to solve here, made without it: every job has its nodes to itself.
std::vector<KnapsackGroup> MakeGroups(const siding::Snapshot& snapshot, const siding::Request& request,
                                      const siding::Policy& policy) {
  const siding::Duration within = request.start_by - policy.margin - snapshot.now;
  const double step = snapshot.shared.bytes_per_second * siding::ToSeconds(within) / policy.budget_steps;
  std::vector<KnapsackGroup> groups;
  for (const siding::Candidate& candidate : siding::MakeCandidates(snapshot, policy)) {
    KnapsackGroup group;
    for (const siding::Option& option : candidate.options) {
      if (option.release > within) continue;
      group.push_back({static_cast<int>(candidate.job->nodes.size()),
                       static_cast<int>(std::ceil(static_cast<double>(option.shared_bytes.value) / step)),
                       option.loss_ms});
    }
    if (!group.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

// least[g][n][b]: least cost to free at least n nodes with at most b steps, from the first g groups.
int64_t Textbook(const std::vector<KnapsackGroup>& groups, int need, int steps) {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 2;
  std::vector<std::vector<std::vector<int64_t>>> least(
      groups.size() + 1,
      std::vector<std::vector<int64_t>>(need + 1, std::vector<int64_t>(steps + 1, kNever)));
  std::fill(least[0][0].begin(), least[0][0].end(), 0);
  for (size_t g = 0; g < groups.size(); ++g) {
    for (int n = 0; n <= need; ++n) {
      for (int b = 0; b <= steps; ++b) {
        least[g + 1][n][b] = least[g][n][b];
        for (const KnapsackChoice& choice : groups[g]) {
          if (choice.steps > b) continue;
          least[g + 1][n][b] = std::min(
              least[g + 1][n][b], least[g][std::max(0, n - choice.nodes)][b - choice.steps] + choice.cost);
        }
      }
    }
  }
  return least[groups.size()][need][steps];
}

struct Timing {
  std::string what;
  std::vector<double> ms;
  void Print() {
    std::sort(ms.begin(), ms.end());
    std::printf("%-34s %9.1f ms median %9.1f ms least %9.1f ms most\n", what.c_str(), ms[ms.size() / 2],
                ms.front(), ms.back());
  }
};

int Argument(int argc, char** argv, int i, int otherwise) {
  return argc > i ? std::atoi(argv[i]) : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  const int jobs = Argument(argc, argv, 1, 1000), need = Argument(argc, argv, 2, 512);
  const int rounds = Argument(argc, argv, 4, 15);
  siding::Policy policy;
  policy.budget_steps = Argument(argc, argv, 3, 64);
  if (jobs < 1 || need < 1 || policy.budget_steps < 1 || rounds < 1) {
    std::fprintf(stderr, "usage: planner_bench [JOBS [NODES_NEEDED [STEPS [ROUNDS]]]]\n");
    return 2;
  }
  const siding::Snapshot snapshot = MakeSnapshot(jobs);
  const siding::Request request{
      siding::JobId(jobs + 1), need, {1, Bytes{0}, 0}, snapshot.now + std::chrono::seconds(60)};
  const std::vector<KnapsackGroup> groups = MakeGroups(snapshot, request, policy);

  siding::Plan plan;
  int64_t knapsack = -1, textbook = -1;
  Timing whole{"MakePlan", {}}, alone{"SolveKnapsack alone", {}}, plain{"textbook dp, no way back", {}};
  for (int round = 0; round < rounds; ++round) {  // in turns, so that a slow moment meets all three
    auto start = std::chrono::steady_clock::now();
    plan = siding::MakePlan(snapshot, request, policy);
    whole.ms.push_back(Milliseconds(start));
    start = std::chrono::steady_clock::now();
    const auto answer = siding::SolveKnapsack(groups, need, policy.budget_steps);
    alone.ms.push_back(Milliseconds(start));
    knapsack = answer ? answer->cost : -1;
    start = std::chrono::steady_clock::now();
    textbook = Textbook(groups, need, policy.budget_steps);
    plain.ms.push_back(Milliseconds(start));
  }
  std::printf("%d jobs on %zu nodes, %d nodes needed, %d budget steps; %d rounds\n", jobs,
              snapshot.nodes.size(), need, policy.budget_steps, rounds);
  whole.Print();
  alone.Print();
  plain.Print();
  const int64_t planned = plan.feasible ? std::llround(plan.loss_node_seconds * 1000) : -1;
  std::printf("victims %zu, loss %.3f node-seconds\n", plan.steps.size(), plan.loss_node_seconds);
  if (!plan.feasible || planned != textbook || knapsack != textbook) {
    std::printf("LOSSES DIFFER: MakePlan %lld, knapsack %lld, textbook %lld node-milliseconds\n",
                static_cast<long long>(planned), static_cast<long long>(knapsack),
                static_cast<long long>(textbook));
    return 1;
  }
  std::printf("losses equal: yes\n");
  return 0;
}
