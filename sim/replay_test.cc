// What every strategy has to keep to, whatever it is: an independent look at what happened.
#include "sim/replay.h"

#include <algorithm>
#include <map>
#include <random>

#include "gtest/gtest.h"
#include "sim/metrics.h"

namespace siding::sim {
namespace {

// A small machine, crowded, with failures.
Workload RandomWorkload(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto upto = [&](int n) { return static_cast<int>(random() % (n + 1)); };
  Trace trace;
  trace.name = "random";
  trace.nodes = 8 + upto(24);
  double at = 0;
  for (int j = 0; j < 120; ++j) {
    TraceJob job;
    job.submit = at += upto(400);
    job.runtime = 1 + upto(4000);
    job.requested = job.runtime + upto(2000);
    job.nodes = 1 + upto(trace.nodes - 1) / (1 + upto(7));
    trace.jobs.push_back(job);
  }
  Parameters p;
  p.seed = seed;
  p.on_demand_share = 0.3;
  p.failures_per_node_year = 300;
  p.shared_bandwidth = 5e9;
  p.checkpoint_most = 0.9;
  return *Draw(trace, p);
}

class ReplayTest : public testing::TestWithParam<std::string> {
 protected:
  Strategy strategy() const { return ParseStrategies(GetParam(), DefaultPolicy())->front(); }
};

TEST_P(ReplayTest, NoNodeIsEverComputedOnByTwo) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Workload workload = RandomWorkload(seed);
    const Replayed replayed = Replay(workload, strategy(), true);
    std::map<int, int> runner;
    for (const LogEntry& entry : replayed.log) {
      for (int node : entry.nodes) {
        switch (entry.what) {
          case LogEntry::What::kTake:
          case LogEntry::What::kWake:
            ASSERT_TRUE(runner.emplace(node, entry.job).second) << "seed " << seed << ", at " << entry.at;
            break;
          case LogEntry::What::kSleep:
            ASSERT_EQ(runner.erase(node), 1u);
            break;
          case LogEntry::What::kLeave:
            // A frozen job leaves nodes on which others compute.
            if (auto it = runner.find(node); it != runner.end() && it->second == entry.job) runner.erase(it);
            break;
          case LogEntry::What::kDone:
            break;
        }
      }
    }
    EXPECT_TRUE(runner.empty());
  }
}

TEST_P(ReplayTest, EveryJobEndsOnceAndNotBeforeItsWorkIsDone) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Workload workload = RandomWorkload(seed);
    const Replayed replayed = Replay(workload, strategy(), true);
    std::vector<int> done(workload.jobs.size(), 0);
    for (const LogEntry& entry : replayed.log) done[entry.job] += entry.what == LogEntry::What::kDone;
    for (size_t j = 0; j < workload.jobs.size(); ++j) {
      const JobResult& result = replayed.jobs[j];
      ASSERT_EQ(result.state, JobState::kDone) << "seed " << seed << ", job " << j;
      ASSERT_EQ(done[j], 1);
      const double took =
          workload.jobs[j].trace.runtime + result.redone + result.redone_failures + result.restoring;
      ASSERT_GE(result.end - workload.jobs[j].trace.submit, took * (1 - 1e-9))
          << "seed " << seed << ", job " << j;
    }
  }
}

// By the log alone: when it first had all its nodes.
TEST_P(ReplayTest, ADeadlineThatIsReportedMetWasMet) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Workload workload = RandomWorkload(seed);
    const Replayed replayed = Replay(workload, strategy(), true);
    std::map<int, double> first;
    for (const LogEntry& entry : replayed.log) {
      if (entry.what != LogEntry::What::kTake) continue;
      ASSERT_EQ(static_cast<int>(entry.nodes.size()), workload.jobs[entry.job].trace.nodes);
      first.emplace(entry.job, entry.at);
    }
    int met = 0;
    for (const auto& [j, at] : first) {
      const Job& job = workload.jobs[j];
      if (job.on_demand)
        met += at >= job.trace.submit && at <= job.start_by() + workload.parameters.tolerance;
    }
    EXPECT_EQ(Measure(workload, GetParam(), replayed).met, met);
  }
}

TEST_P(ReplayTest, TheSameSeedGivesTheSameResult) {
  const Workload workload = RandomWorkload(5);
  const Replayed a = Replay(workload, strategy()), b = Replay(workload, strategy());
  for (size_t j = 0; j < workload.jobs.size(); ++j) ASSERT_EQ(a.jobs[j].end, b.jobs[j].end);
}

INSTANTIATE_TEST_SUITE_P(Strategies, ReplayTest,
                         testing::Values("siding", "kill-only", "checkpoint-all", "slurm-preempt",
                                         "slurm-youngest-first", "pbs-order", "kueue-classical",
                                         "static-reservation", "none"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// One batch job on the whole machine of two nodes from 0 on; one on-demand job at 100.
Workload TwoJobs(double notice, int wanted = 1) {
  Workload w;
  w.nodes = 2;
  w.parameters.spread = 0;
  Job batch;
  batch.trace = {0, 1000, 1000, 2};
  batch.bytes = 10e9;  // 12 s to write
  Job express;
  express.trace = {100, 50, 50, wanted};
  express.on_demand = true;
  express.notice = notice;
  express.bytes = 10e9;
  w.jobs = {batch, express};
  return w;
}

Metrics Of(const Workload& workload, const std::string& strategy) {
  return Measure(workload, strategy, Replay(workload, ParseStrategies(strategy, DefaultPolicy())->front()));
}

TEST(Replay, AFrozenJobLosesNothing) {
  const Metrics m = Of(TwoJobs(0, 2), "siding");
  EXPECT_EQ(m.met, 1);
  EXPECT_EQ(m.lost_node_hours, 0);
  EXPECT_DOUBLE_EQ(m.span, 1050);
}
TEST(Replay, AKilledJobDoesItsWorkAgain) {
  const Metrics m = Of(TwoJobs(0), "slurm-preempt");
  EXPECT_EQ(m.met, 1);
  EXPECT_DOUBLE_EQ(m.lost_node_hours, 2 * 100 / 3600.0);
}
TEST(Replay, AHalfOfWhatWasGivenUpIsUsed) {
  EXPECT_EQ(Of(TwoJobs(0), "kill-only").preemption_efficiency, 0.5);
}
TEST(Replay, WithoutPreemptionItWaits) {
  const Metrics m = Of(TwoJobs(60), "none");
  EXPECT_EQ(m.met, 0);
  EXPECT_EQ(m.preemptions, 0);
  EXPECT_DOUBLE_EQ(m.span, 1050);
}
TEST(Replay, AnImageTakesTimeThatADeadlineMayNotHave) {
  Workload w = TwoJobs(0);
  w.jobs[0].bytes = 100e9;  // 102 s
  EXPECT_EQ(Of(w, "checkpoint-all").feasible, 0);
  w.jobs[1].notice = 300;
  EXPECT_EQ(Of(w, "checkpoint-all").met, 1);
}

TEST(Replay, AVictimIsLeftAloneForAsLongAsThePolicySays) {
  for (const auto& [notice, met] : {std::pair{20.0, 0}, std::pair{60.0, 1}}) {
    const Workload w = TwoJobs(notice);
    Strategy strategy{"siding", Strategy::Kind::kPlan, DefaultPolicy()};
    strategy.policy.min_runtime = std::chrono::seconds(150);
    const Metrics m = Measure(w, "siding", Replay(w, strategy));
    EXPECT_EQ(m.feasible, met);
    EXPECT_EQ(m.met, met);
  }
}
TEST(Replay, ARequestWaitsForAnotherThatWillHaveEnded) {
  Workload w = TwoJobs(60, 2);
  w.jobs[0] = w.jobs[1];
  w.jobs[1].trace.submit = 110;
  const Metrics m = Of(w, "siding");
  EXPECT_EQ(m.feasible, 2);
  EXPECT_EQ(m.met, 2);
}

}  // namespace
}  // namespace siding::sim
