// Several deadlines, crowded nodes, images in advance, migration, classes and confidence against brute force:
// every combination of every job's options and deadlines is tried on thousands of random small clusters. The
// options themselves are taken from options.h; brute_force_test.cc makes its own.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "gtest/gtest.h"
#include "planner/options.h"
#include "planner/planner.h"
#include "planner/small_cluster.h"

namespace siding::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Instance {
  Snapshot snapshot;
  std::vector<Request> requests;  // by deadline
  Policy policy = NoMargin();
};

class Everything {
 public:
  explicit Everything(const Instance& x)
      : x_(x), arrival_(ArrivalOf(x.snapshot, x.requests.front())), leaves_(x.snapshot.jobs.size()) {
    Request strictest = x.requests.front();
    int nodes = 0;
    for (const Request& r : x.requests) {
      strictest.nodes = std::max(strictest.nodes, r.nodes);
      strictest.hold = std::max(strictest.hold, r.hold);
      within_.push_back(std::max(Duration(0), r.start_by - arrival_));
      wanted_.push_back(nodes += r.nodes);
    }
    candidates_ = MakeCandidates(x.snapshot, strictest, x.policy);
  }

  // The least cost, in node-milliseconds, then victims; nullopt if nothing serves.
  std::optional<std::pair<int64_t, int>> Best() {
    Try(0, {0, 0});
    return best_;
  }

  // The nodes that are free when these have left by then.
  std::set<NodeId> FreeBy(Time when, const std::vector<Plan>& plans) {
    for (Leaves& l : leaves_) l.option = nullptr;
    for (const Plan& plan : plans) {
      for (const PlanStep& step : plan.steps) {
        for (size_t j = 0; j < candidates_.size(); ++j) {
          if (candidates_[j].job->id != step.job || step.early || step.predicted_release > when) continue;
          for (const Option& o : candidates_[j].options) {
            const Method method = o.early ? Method::kKill : o.method;
            if (method == step.method && (o.method != Method::kCheckpoint || o.tier == step.tier))
              leaves_[j] = {&o, 0};
          }
        }
      }
    }
    std::set<NodeId> free;
    for (const NodeView& node : x_.snapshot.nodes) {
      if (IsFree(node, when - arrival_, 0)) free.insert(node.id);
    }
    return free;
  }

 private:
  struct Leaves {
    const Option* option = nullptr;
    size_t by = 0;
  };

  void Try(size_t j, std::pair<int64_t, int> cost) {
    if (best_ && cost >= *best_) return;
    if (j == candidates_.size()) {
      if (LimitsHold() && Serves()) best_ = cost;
      return;
    }
    leaves_[j].option = nullptr;
    Try(j + 1, cost);
    for (const Option& option : candidates_[j].options) {
      for (size_t by = 0; by < within_.size(); ++by) {
        if (option.release > within_[by]) continue;
        leaves_[j] = {&option, by};
        Try(j + 1, {cost.first + option.cost_ms, cost.second + 1});
      }
    }
    leaves_[j].option = nullptr;
  }

  bool Serves() const {
    for (size_t k = 0; k < within_.size(); ++k) {
      int free = 0;
      for (const NodeView& node : x_.snapshot.nodes) free += IsFree(node, within_[k], k);
      if (free < wanted_[k]) return false;
    }
    return true;
  }

  bool IsFree(const NodeView& node, Duration within, size_t k) const {
    const Resources& wanted = x_.requests.front().per_node;
    Resources free = node.free;
    int64_t frozen = 0;
    bool anyway = false;
    for (const bool victims : {false, true}) {
      for (size_t j = 0; j < candidates_.size(); ++j) {
        const JobView& job = *candidates_[j].job;
        const Option* option = leaves_[j].option;
        for (size_t rank = 0; rank < job.nodes.size(); ++rank) {
          if (job.nodes[rank] != node.id) continue;
          if (!victims && job.releasing_at && *job.releasing_at - arrival_ <= within) free += job.per_node;
          if (!victims || option == nullptr || leaves_[j].by > k) continue;
          free.slots += job.per_node.slots;
          free.gpus += job.per_node.gpus;
          if (option->stays_in_ram) {
            frozen += job.memory[rank].value;
          } else {
            free.memory += job.per_node.memory;
          }
        }
      }
      if (!victims) anyway = free.Covers(wanted);
    }
    const bool fits = frozen == 0 || frozen + wanted.memory.value <= node.ram_available.value;
    return node.usable && node.capacity.Covers(wanted) && (anyway || (fits && free.Covers(wanted)));
  }

  bool LimitsHold() const {
    if (StepsOf(true, 0, x_.snapshot.now, arrival_) > x_.policy.budget_steps) return false;
    for (size_t k = 0; k < within_.size(); ++k) {
      if (StepsOf(false, k, arrival_, arrival_ + within_[k]) > x_.policy.budget_steps) return false;
      for (const NodeView& node : x_.snapshot.nodes) {
        if (!Bears(node, k)) return false;
      }
    }
    return TargetsSuffice();
  }

  // Jobs differ in their GPUs only, so a node for one that has some is one for all.
  bool TargetsSuffice() const {
    size_t ranks = 0;
    for (int gpus : {1, 0}) {
      size_t spare = 0;
      const Resources needed{1, Bytes{100 * kMiB}, gpus};
      for (const NodeView& node : x_.snapshot.nodes) {
        spare +=
            node.usable && !node.capacity.Covers(x_.requests.front().per_node) && node.free.Covers(needed);
      }
      for (size_t j = 0; j < candidates_.size(); ++j) {
        const JobView& job = *candidates_[j].job;
        if (leaves_[j].option != nullptr && leaves_[j].option->migrates && job.per_node.gpus == gpus)
          ranks += job.nodes.size();
      }
      if (ranks > spare) return false;
    }
    return true;
  }

  // Of what the shared tier can take between these times.
  int StepsOf(bool early, size_t k, Time from, Time to) const {
    const SharedTier& tier = x_.snapshot.shared;
    const double lead = tier.bytes_per_second * ToSeconds(from - x_.snapshot.now);
    const double left = std::max(0.0, double(tier.in_flight.value) - lead);
    const double bytes = std::max(0.0, tier.bytes_per_second * ToSeconds(to - from) - left);
    const double step = bytes / x_.policy.budget_steps;
    double steps = 0;
    for (size_t j = 0; j < candidates_.size(); ++j) {
      const Option* option = leaves_[j].option;
      if (option == nullptr || option->early != early || leaves_[j].by > k) continue;
      if (option->shared_bytes > Bytes{0})
        steps += step > 0 ? std::ceil(double(option->shared_bytes.value) / step) : 1e6;
    }
    return int(std::min(steps, 1e9));
  }

  bool Bears(const NodeView& node, size_t k) const {
    int64_t disk = 0;
    std::map<std::pair<Tier, bool>, Duration> writing;
    for (size_t j = 0; j < candidates_.size(); ++j) {
      const Option* option = leaves_[j].option;
      if (option == nullptr || leaves_[j].by > k) continue;
      const JobView& job = *candidates_[j].job;
      for (size_t rank = 0; rank < job.nodes.size(); ++rank) {
        if (job.nodes[rank] != node.id) continue;
        if (option->to_local_disk) disk += job.memory[rank].value;
        if (!option->by_rank.empty()) writing[{option->tier, option->early}] += option->by_rank[rank];
      }
    }
    if (disk > node.local_disk_free.value) return false;
    return std::all_of(writing.begin(), writing.end(), [&](const auto& w) {
      return w.second <= (w.first.second ? arrival_ - x_.snapshot.now : within_[k]);
    });
  }

  const Instance& x_;
  const Time arrival_;
  std::vector<Duration> within_;
  std::vector<int> wanted_;
  std::vector<Candidate> candidates_;
  std::vector<Leaves> leaves_;
  std::optional<std::pair<int64_t, int>> best_;
};

class Cluster {
 public:
  explicit Cluster(std::mt19937& random) : random_(random) {}

  // Up to 3 nodes with up to `jobs` jobs; nodes that the request cannot use, gangs across them, and limits
  // that often bind.
  Instance Make(int jobs, int slots) {
    Instance x;
    x.snapshot = MakeSnapshot(2 + Upto(1), {});
    for (NodeView& node : x.snapshot.nodes) {
      node.capacity = node.free = {slots, Bytes{1024 * kMiB}, Upto(3) > 0 ? 1 : 0};
      node.usable = Upto(9) > 0;
      node.ram_available = Bytes{100 * Upto(6) * kMiB};
      node.local_disk_free = Bytes{100 * Upto(6) * kMiB};
      node.local.dump.spread = node.shared.dump.spread = 0.1 * Upto(3);
      if (Upto(4) == 0) node.local = {};
      if (Upto(4) > 0) node.gpu = {{100.0 * kMiB, milliseconds(100), 0.1 * Upto(2)}, {200.0 * kMiB}};
    }
    Classes(x.policy);
    for (int j = 1; j <= jobs; ++j) AddJob(j, x.snapshot);
    x.snapshot.shared.bytes_per_second = 50.0 * kMiB * Upto(3);
    x.snapshot.shared.in_flight = Bytes{100 * Upto(2) * kMiB};
    x.policy.budget_steps = 3 + Upto(8);
    x.policy.confidence = 0.5 + 0.15 * Upto(3);
    return x;
  }

  Request MakeRequest(int id, int nodes, const Resources& per_node) {
    Request request{JobId(id), nodes, per_node, kNow + milliseconds(Upto(14000))};
    request.hold = seconds(10 * Upto(3));
    return request;
  }
  int Upto(int n) { return int(random_() % unsigned(n + 1)); }

 private:
  void Classes(Policy& policy) {
    policy.classes.resize(2);
    policy.classes[0].loss_weight = 0.5;
    policy.classes[1].loss_weight = 3;
    policy.classes[1].delay_weight = 2;
    policy.delay_weight = 0.5 * Upto(2);
    policy.unused_node_weight = 0.25 * Upto(2);
    policy.frozen_node_weight = 0.5 * Upto(2);
  }

  void AddJob(int j, Snapshot& snapshot) {
    const Resources holds{1, Bytes{100 * kMiB}, Upto(2) == 0 ? 1 : 0};
    std::vector<int> on;
    for (size_t n = 0; n < snapshot.nodes.size(); ++n) {
      if (on.size() < 2 && Upto(1) == 0 && snapshot.nodes[n].free.Covers(holds)) on.push_back(int(n));
    }
    if (on.empty()) return;
    MethodSet methods;
    for (Method m : kAllMethods)
      if (Upto(2) > 0) methods.Add(m);
    JobView job = MakeJob(j, on, methods);
    job.per_node = holds;
    job.job_class = Upto(2) - 1;
    for (Bytes& b : job.memory) b = Bytes{(1 + Upto(300)) * kMiB};
    if (holds.gpus > 0) {
      for (const Bytes& b : job.memory) job.gpu_memory.push_back(Bytes{b.value * Upto(4) / 4});
    }
    job.durable_at = kNow - milliseconds(Upto(60000));
    job.kill_grace = seconds(Upto(12));
    job.app_grace = seconds(1 + Upto(12));
    if (Upto(9) == 0) job.releasing_at = kNow + seconds(Upto(12));
    for (int n : on) snapshot.nodes[n].free -= holds;
    snapshot.jobs.push_back(std::move(job));
  }

  std::mt19937& random_;
};

// All feasible or none; the least cost; every request's nodes are free by its own deadline, and no
// others.
void ExpectTheBest(const Instance& x, const std::vector<Plan>& plans, int& feasible) {
  const auto best = Everything(x).Best();
  for (const Plan& plan : plans) ASSERT_EQ(plan.feasible, best.has_value());
  if (!best) return;
  ++feasible;
  double cost = 0;
  std::set<JobId> victims;
  std::set<NodeId> taken;
  for (size_t i = 0; i < plans.size(); ++i) {
    ASSERT_TRUE(plans[i].exact);
    cost += plans[i].cost_node_seconds;
    for (const PlanStep& step : plans[i].steps) victims.insert(step.job);
    ASSERT_LE(ToMicros(plans[i].predicted_start), ToMicros(std::max(kNow, x.requests[i].start_by)));
    ASSERT_EQ(int(plans[i].nodes.size()), x.requests[i].nodes);
    const std::set<NodeId> free = Everything(x).FreeBy(std::max(x.requests[i].start_by, kNow), plans);
    for (const NodeId& node : plans[i].nodes) {
      ASSERT_TRUE(free.contains(node));
      ASSERT_TRUE(taken.insert(node).second);
    }
  }
  ASSERT_EQ(std::llround(cost * 1000), best->first);
  ASSERT_EQ(int(victims.size()), best->second);
}

TEST(Together, RequestsWithDifferentDeadlinesGetTheCheapestPlan) {
  std::mt19937 random(1);
  Cluster cluster(random);
  int feasible = 0;
  for (int i = 0; i < 30000; ++i) {
    SCOPED_TRACE(i);
    Instance x = cluster.Make(1 + cluster.Upto(3), 2);
    if (x.snapshot.jobs.empty()) continue;
    const Resources per_node{1 + cluster.Upto(1), Bytes{200 * cluster.Upto(3) * kMiB}, cluster.Upto(1)};
    const int requests = 2 + cluster.Upto(1);
    for (int r = 0; r < requests; ++r) x.requests.push_back(cluster.MakeRequest(90 + r, 1, per_node));
    std::sort(x.requests.begin(), x.requests.end(),
              [](const Request& a, const Request& b) { return a.start_by < b.start_by; });
    ASSERT_NO_FATAL_FAILURE(ExpectTheBest(x, MakePlans(x.snapshot, x.requests, x.policy), feasible));
  }
  EXPECT_GT(feasible, 200);
}

TEST(Together, AnAnnouncedRequestGetsTheCheapestPlan) {
  std::mt19937 random(2);
  Cluster cluster(random);
  int feasible = 0;
  for (int i = 0; i < 3000; ++i) {
    SCOPED_TRACE(i);
    Instance x = cluster.Make(1 + cluster.Upto(3), 2);
    if (x.snapshot.jobs.empty()) continue;
    Request request = cluster.MakeRequest(99, 1 + cluster.Upto(1), {1 + cluster.Upto(1), Bytes{0}, 0});
    request.not_before = kNow + seconds(cluster.Upto(20));
    request.start_by = request.not_before + milliseconds(cluster.Upto(6000));
    x.requests = {request};
    ASSERT_NO_FATAL_FAILURE(ExpectTheBest(x, {MakePlan(x.snapshot, request, x.policy)}, feasible));
  }
  EXPECT_GT(feasible, 500);
}

TEST(Together, ManyJobsOnOneNodeAreClearedInTheCheapestWay) {
  std::mt19937 random(3);
  Cluster cluster(random);
  int feasible = 0;
  for (int i = 0; i < 3000; ++i) {
    SCOPED_TRACE(i);
    Instance x = cluster.Make(7, 5);
    if (x.snapshot.jobs.empty()) continue;
    x.requests = {cluster.MakeRequest(99, 1 + cluster.Upto(1), {1 + cluster.Upto(4), Bytes{0}, 0})};
    ASSERT_NO_FATAL_FAILURE(ExpectTheBest(x, {MakePlan(x.snapshot, x.requests.front(), x.policy)}, feasible));
  }
  EXPECT_GT(feasible, 100);
}

}  // namespace
}  // namespace siding::test
