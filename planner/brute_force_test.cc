// The planner against every other way of doing it: on thousands of random small clusters all combinations of
// all jobs' options are tried by code that shares nothing with the planner but its inputs.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "gtest/gtest.h"
#include "planner/planner.h"
#include "planner/random_cluster.h"

namespace siding::test {
namespace {

using std::chrono::milliseconds;

struct Way {
  Method method;
  Tier tier;
  Duration release{0};
  int64_t loss_ms = 0;
  double shared_bytes = 0;
  Duration wait{0};  // of release
};

class BruteForce {
 public:
  BruteForce(const Snapshot& s, const Request& r, const Policy& p)
      : s_(s),
        r_(r),
        p_(p),
        within_(r.start_by - p.margin - s.now),
        steps_(p.budget_steps),
        way_(s.jobs.size(), -1) {
    step_bytes_ =
        std::max(0.0, s.shared.bytes_per_second * ToSeconds(within_) - double(s.shared.in_flight.value)) /
        steps_;
    for (const JobView& job : s.jobs) ways_.push_back(WaysOf(job));
  }

  // Least loss and number of victims; nullopt if no combination serves.
  std::optional<std::pair<int64_t, int>> Best() {
    Try(0);
    return best_;
  }

  // Whether these victims, and nothing else, make room on every one of these nodes, in time and within all
  // limits.
  bool Works(const Plan& plan) {
    for (const PlanStep& step : plan.steps) {
      for (size_t j = 0; j < s_.jobs.size(); ++j) {
        for (size_t w = 0; w < ways_[j].size() && s_.jobs[j].id == step.job; ++w) {
          if (ways_[j][w].method == step.method &&
              (step.method != Method::kCheckpoint || ways_[j][w].tier == step.tier))
            way_[j] = int(w);
        }
      }
    }
    const int victims = int(std::count_if(way_.begin(), way_.end(), [](int w) { return w >= 0; }));
    const std::set<NodeId> freed = Freed();
    return victims == int(plan.steps.size()) && LimitsHold() && int(plan.nodes.size()) == r_.nodes &&
           std::all_of(plan.nodes.begin(), plan.nodes.end(),
                       [&](const NodeId& n) { return freed.contains(n); }) &&
           IsOnTime(plan);
  }

 private:
  const NodeView& NodeOf(const NodeId& id) const {
    return *std::find_if(s_.nodes.begin(), s_.nodes.end(), [&](const NodeView& n) { return n.id == id; });
  }

  Duration WaitOf(const JobView& job, Method method) const {
    Duration wait = std::max(Duration(0), job.running_since + p_.min_runtime - s_.now);
    if (job.last_preempted) wait = std::max(wait, *job.last_preempted + p_.cooldown - s_.now);
    if (job.saved_by && method != Method::kKill) wait = std::max(wait, *job.saved_by - s_.now);
    return wait;
  }
  bool HasEnded(const JobView& job) const {
    return !job.releasing_at && job.ends_at && *job.ends_at - s_.now <= within_;
  }

  // No victim begins before it may, and what is written over one way, each from its own beginning on, is
  // written by the deadline.
  bool IsOnTime(const Plan& plan) const {
    std::map<std::pair<NodeId, Tier>, std::map<Duration, Duration>> writing;  // by beginning
    std::map<Duration, double> shared;
    for (const PlanStep& step : plan.steps) {
      const Duration begin = step.begin == Time{} ? Duration(0) : step.begin - s_.now;
      for (size_t j = 0; j < s_.jobs.size(); ++j) {
        if (s_.jobs[j].id != step.job) continue;
        if (begin < WaitOf(s_.jobs[j], step.method)) return false;
        if (step.method != Method::kCheckpoint) continue;
        for (size_t rank = 0; rank < s_.jobs[j].nodes.size(); ++rank) {
          const NodeView& node = NodeOf(s_.jobs[j].nodes[rank]);
          const Rate& rate = step.tier == Tier::kLocal ? node.local.dump : node.shared.dump;
          writing[{node.id, step.tier}][begin] += rate.For(s_.jobs[j].memory[rank]);
          if (step.tier == Tier::kShared) shared[begin] += double(s_.jobs[j].memory[rank].value);
        }
      }
    }
    for (const auto& [way, by_beginning] : writing) {
      Duration sum{0};
      for (auto it = by_beginning.rbegin(); it != by_beginning.rend(); ++it) {
        sum += it->second;
        if (it->first + sum > within_ + std::chrono::microseconds(9)) return false;
      }
    }
    double bytes = 0;
    for (auto it = shared.rbegin(); it != shared.rend(); ++it) {
      bytes += it->second;
      if (ToSeconds(it->first) + bytes / s_.shared.bytes_per_second > ToSeconds(within_) + 1e-5) return false;
    }
    if (bytes > 0) bytes += double(s_.shared.in_flight.value);
    return bytes <= s_.shared.bytes_per_second * (ToSeconds(within_) + 1e-5);
  }

  // What is written only after a wait counts as if it were so much more.
  double Stretch(Duration wait) const {
    return wait >= within_ ? 1 : ToSeconds(within_) / ToSeconds(within_ - wait);
  }

  std::vector<Way> WaysOf(const JobView& job) const {
    std::vector<Way> ways;
    if (job.releasing_at || job.kind == JobKind::kOnDemand || HasEnded(job)) return ways;
    const int64_t n = int64_t(job.nodes.size());
    if (job.methods.Has(Method::kSuspend)) ways.push_back({Method::kSuspend, Tier::kShared});
    for (Tier tier : {Tier::kLocal, Tier::kShared}) {
      Duration dump{0}, restore{0};
      double bytes = 0;
      bool known =
          job.methods.Has(Method::kCheckpoint) && (tier == Tier::kLocal || s_.shared.bytes_per_second > 0);
      for (size_t rank = 0; rank < job.nodes.size() && known; ++rank) {
        const TierRates rates =
            tier == Tier::kLocal ? NodeOf(job.nodes[rank]).local : NodeOf(job.nodes[rank]).shared;
        known = rates.dump.known() && rates.restore.known();
        if (!known) break;
        dump = std::max(dump, rates.dump.For(job.memory[rank]));
        restore = std::max(restore, rates.restore.For(job.memory[rank]));
        if (tier == Tier::kShared) bytes += double(job.memory[rank].value);
      }
      if (known)
        ways.push_back({Method::kCheckpoint, tier, dump, n * ((dump + restore).count() / 1000), bytes});
    }
    if (job.methods.Has(Method::kApp))
      ways.push_back({Method::kApp, Tier::kShared, *job.app_grace, n * (job.app_grace->count() / 1000)});
    if (job.methods.Has(Method::kKill))
      ways.push_back({Method::kKill, Tier::kShared, job.kill_grace,
                      n * ((s_.now + WaitOf(job, Method::kKill) - job.durable_at).count() / 1000)});
    for (Way& way : ways) {
      way.wait = WaitOf(job, way.method);
      way.release += way.wait;
    }
    std::erase_if(ways, [&](const Way& w) { return w.release > within_; });
    return ways;
  }

  void Try(size_t j) {
    if (j < s_.jobs.size()) {
      for (way_[j] = -1; way_[j] < int(ways_[j].size()); ++way_[j]) Try(j + 1);
      return;
    }
    if (!LimitsHold() || int(Freed().size()) < r_.nodes) return;
    std::pair<int64_t, int> cost{0, 0};
    for (size_t i = 0; i < s_.jobs.size(); ++i) {
      if (way_[i] < 0) continue;
      cost.first += ways_[i][way_[i]].loss_ms;
      ++cost.second;
    }
    if (!best_ || cost < *best_) best_ = cost;
  }

  bool LimitsHold() const {
    double steps = 0;
    std::map<NodeId, int64_t> disk;
    std::map<std::pair<NodeId, Tier>, Duration> writing;  // one after another, over the same way of a node
    for (size_t j = 0; j < s_.jobs.size(); ++j) {
      if (way_[j] < 0) continue;
      const Way& way = ways_[j][way_[j]];
      if (way.shared_bytes > 0)
        steps += step_bytes_ > 0
                     ? std::ceil(std::ceil(way.shared_bytes * Stretch(way.wait) - 1e-3) / step_bytes_)
                     : steps_ + 1;
      if (way.method != Method::kCheckpoint) continue;
      for (size_t rank = 0; rank < s_.jobs[j].nodes.size(); ++rank) {
        const NodeView& node = NodeOf(s_.jobs[j].nodes[rank]);
        const Bytes memory = s_.jobs[j].memory[rank];
        const bool local = way.tier == Tier::kLocal;
        const Duration takes = (local ? node.local : node.shared).dump.For(memory);
        writing[{node.id, way.tier}] +=
            Duration(int64_t(std::ceil(double(takes.count()) * Stretch(way.wait) - 1e-3)));
        if (local) disk[node.id] += memory.value;
      }
    }
    const bool written =
        std::all_of(writing.begin(), writing.end(), [&](const auto& w) { return w.second <= within_; });
    return written && steps <= steps_ && std::all_of(disk.begin(), disk.end(), [&](const auto& d) {
             return d.second <= NodeOf(d.first).local_disk_free.value;
           });
  }

  std::set<NodeId> Freed() const {
    std::set<NodeId> freed;
    for (const NodeView& node : s_.nodes) {
      Resources free = node.free;
      const auto leave = [&](const JobView& job, bool frozen) {
        free.slots += job.per_node.slots;
        free.gpus += job.per_node.gpus;
        if (!frozen) free.memory += job.per_node.memory;
      };
      int64_t in_ram = 0;
      const auto covers = [&] {
        return node.usable && node.capacity.Covers(r_.per_node) && free.Covers(r_.per_node);
      };
      for (const JobView& job : s_.jobs) {
        const bool mine = job.releasing_for == JobId() || job.releasing_for == r_.id;
        const bool gone = job.releasing_at ? mine && *job.releasing_at - s_.now <= within_ : HasEnded(job);
        if (!gone) continue;
        for (const NodeId& id : job.nodes)
          if (id == node.id) leave(job, false);
      }
      const bool anyway = covers();
      for (size_t j = 0; j < s_.jobs.size(); ++j) {
        if (way_[j] < 0) continue;
        for (size_t rank = 0; rank < s_.jobs[j].nodes.size(); ++rank) {
          if (s_.jobs[j].nodes[rank] != node.id) continue;
          const bool frozen = ways_[j][way_[j]].method == Method::kSuspend;
          leave(s_.jobs[j], frozen);
          if (frozen) in_ram += s_.jobs[j].memory[rank].value;
        }
      }
      const bool ram = in_ram == 0 || in_ram + r_.per_node.memory.value <= node.ram_available.value;
      if (anyway || (ram && covers())) freed.insert(node.id);
    }
    return freed;
  }

  const Snapshot& s_;
  const Request& r_;
  const Policy& p_;
  const Duration within_;
  const int steps_;
  double step_bytes_ = 0;
  std::vector<std::vector<Way>> ways_;
  std::vector<int> way_;  // per job: index into its ways, or -1: stays
  std::optional<std::pair<int64_t, int>> best_;
};

// Slots of each node, and whether jobs are left alone for a while.
class PlannerBruteForceTest : public testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  static int Seed() { return std::get<0>(GetParam()); }
  static Instance Draw(std::mt19937& random) {
    Instance x = RandomInstance(random, std::get<0>(GetParam()));
    if (std::get<1>(GetParam())) AddGuards(random, x);
    return x;
  }
};

TEST_P(PlannerBruteForceTest, EveryPlanIsTheBest) {
  std::mt19937 random(7 + Seed());
  int feasible = 0;
  for (int i = 0; i < 3000; ++i) {
    SCOPED_TRACE(i);
    const Instance x = Draw(random);
    const Plan plan = MakePlan(x.snapshot, x.request, x.policy);
    const auto best = BruteForce(x.snapshot, x.request, x.policy).Best();
    ASSERT_EQ(plan.feasible, best.has_value());
    if (!best) continue;
    ++feasible;
    ASSERT_EQ(std::llround(plan.loss_node_seconds * 1000), best->first);
    ASSERT_EQ(int(plan.steps.size()), best->second);
    ASSERT_TRUE(BruteForce(x.snapshot, x.request, x.policy).Works(plan));
  }
  EXPECT_GT(feasible, 600);
  EXPECT_LT(feasible, 2700);
}

TEST_P(PlannerBruteForceTest, PredictedStartIsInTime) {
  std::mt19937 random(77 + Seed());
  for (int i = 0; i < 1000; ++i) {
    SCOPED_TRACE(i);
    const Instance x = Draw(random);
    const Plan plan = MakePlan(x.snapshot, x.request, x.policy);
    if (plan.feasible) {
      ASSERT_LE(ToMicros(plan.predicted_start), ToMicros(x.request.start_by));
    }
  }
}

TEST_P(PlannerBruteForceTest, EarliestIsFeasibleAndNotMuchLaterThanCanBe) {
  std::mt19937 random(70 + Seed());
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    SCOPED_TRACE(i);
    Instance x = Draw(random);
    const Plan plan = MakePlan(x.snapshot, x.request, x.policy);
    if (plan.feasible || !plan.earliest) continue;
    ++refused;
    x.request.start_by = *plan.earliest;
    ASSERT_TRUE(BruteForce(x.snapshot, x.request, x.policy).Best().has_value());
    x.request.start_by -= std::max<Duration>(milliseconds(20), (*plan.earliest - kNow) / 50);
    ASSERT_FALSE(BruteForce(x.snapshot, x.request, x.policy).Best().has_value());
  }
  EXPECT_GT(refused, 50);
}

TEST_P(PlannerBruteForceTest, NeverMeansNever) {
  std::mt19937 random(700 + Seed());
  int never = 0;
  for (int i = 0; i < 1000; ++i) {
    SCOPED_TRACE(i);
    Instance x = Draw(random);
    const Plan plan = MakePlan(x.snapshot, x.request, x.policy);
    if (plan.feasible || plan.earliest) continue;
    ++never;
    x.request.start_by = kNow + std::chrono::hours(1000);
    ASSERT_FALSE(BruteForce(x.snapshot, x.request, x.policy).Best().has_value());
  }
  EXPECT_GT(never, 20);
}

TEST_P(PlannerBruteForceTest, OrderOfTheSnapshotDoesNotMatter) {
  std::mt19937 random(7000 + Seed());
  for (int i = 0; i < 1000; ++i) {
    SCOPED_TRACE(i);
    Instance x = Draw(random);
    const Plan plan = MakePlan(x.snapshot, x.request, x.policy);
    std::shuffle(x.snapshot.jobs.begin(), x.snapshot.jobs.end(), random);
    std::shuffle(x.snapshot.nodes.begin(), x.snapshot.nodes.end(), random);
    const Plan again = MakePlan(x.snapshot, x.request, x.policy);
    ASSERT_EQ(plan.nodes, again.nodes);
    ASSERT_EQ(plan.steps.size(), again.steps.size());
    for (size_t s = 0; s < plan.steps.size(); ++s) {
      ASSERT_EQ(plan.steps[s].job, again.steps[s].job);
      ASSERT_EQ(plan.steps[s].method, again.steps[s].method);
      ASSERT_EQ(plan.steps[s].tier, again.steps[s].tier);
    }
  }
}

TEST_P(PlannerBruteForceTest, EveryJobIsExplained) {
  std::mt19937 random(70000 + Seed());
  for (int i = 0; i < 500; ++i) {
    const Instance x = Draw(random);
    const Plan plan = MakePlan(x.snapshot, x.request, x.policy);
    std::set<JobId> explained;
    for (const PlanStep& step : plan.steps)
      if (!step.reason.empty()) explained.insert(step.job);
    for (const PlanKeep& keep : plan.kept)
      if (!keep.reason.empty()) explained.insert(keep.job);
    ASSERT_EQ(explained.size(), x.snapshot.jobs.size());
  }
}

INSTANTIATE_TEST_SUITE_P(SlotsAndGuards, PlannerBruteForceTest,
                         testing::Combine(testing::Values(1, 2, 4), testing::Bool()));

}  // namespace
}  // namespace siding::test
