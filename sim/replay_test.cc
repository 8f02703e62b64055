// What every strategy has to keep to, whatever it is: an independent look at what happened.
#include "sim/replay.h"

#include <algorithm>
#include <map>
#include <random>

#include "gtest/gtest.h"
#include "sim/image_row.h"
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
  p.disks_lost = 0.5;
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
    double stopped = 0;
    for (const LogEntry& entry : replayed.log) done[entry.job] += entry.what == LogEntry::What::kDone;
    for (size_t j = 0; j < workload.jobs.size(); ++j) {
      const JobResult& result = replayed.jobs[j];
      ASSERT_EQ(result.state, JobState::kDone) << "seed " << seed << ", job " << j;
      ASSERT_EQ(done[j], 1);
      stopped += result.stopped;
      const double took = workload.jobs[j].trace.runtime + result.redone + result.redone_failures +
                          result.restoring + result.stopped + result.slowed;
      ASSERT_GE(result.end - workload.jobs[j].trace.submit, took * (1 - 1e-9))
          << "seed " << seed << ", job " << j;
    }
    EXPECT_EQ(stopped > 0, GetParam().starts_with("siding-protected"));
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
                         testing::Values("siding", "siding-protected", "siding-protected-local", "kill-only",
                                         "checkpoint-all", "slurm-preempt", "slurm-youngest-first",
                                         "pbs-order", "kueue-classical", "static-reservation", "none"),
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

// The first image is begun at 36 s, and counts 12 later; the next one 36 later, and so on. A whole one takes
// 12 s, the next five 3.
Workload Protected(double stop) {
  Workload w = TwoJobs(0);
  w.parameters.image_stop = stop;
  w.parameters.image_stop_per_gib = w.parameters.untracked_stop_per_gib = w.parameters.page_fault = 0;
  return w;
}
Workload ProtectedAlone(double stop, std::vector<Failure> failures = {}) {
  Workload w = Protected(stop);
  w.jobs.resize(1);
  w.failures = std::move(failures);
  return w;
}
Strategy Protecting(Method method) {
  Strategy strategy{"ours", Strategy::Kind::kPlan, {}};
  strategy.policy.classes = {{.name = "all", .methods = {{method}}}};
  strategy.policy.most_lost_work = std::chrono::minutes(1);
  strategy.policy.checkpoint_bandwidth = 0.5;
  strategy.policy.checkpoint_stops = 0.05;
  return strategy;
}
Metrics OfProtecting(const Workload& w, Method method) {
  return Measure(w, "ours", Replay(w, Protecting(method)));
}
Metrics OfKilling(const Workload& w) { return OfProtecting(w, Method::kKill); }

TEST(Replay, AKillLeavesWhatTheNewestImageHas) {
  EXPECT_DOUBLE_EQ(OfKilling(Protected(0)).lost_node_hours, 2 * 16 / 3600.0);
}
TEST(Replay, AKillDuringTheFirstImageLeavesNothing) {
  Workload w = Protected(0);
  w.jobs[1].trace.submit = 40;
  EXPECT_DOUBLE_EQ(OfKilling(w).lost_node_hours, 2 * 40 / 3600.0);
}
TEST(Replay, AFailureLeavesWhatTheNewestImageHas) {
  EXPECT_DOUBLE_EQ(OfKilling(ProtectedAlone(0, {{250, 0}})).failure_node_hours, 2 * 10 / 3600.0);
}
TEST(Replay, AFailureDuringTheFirstImageLeavesNothing) {
  EXPECT_DOUBLE_EQ(OfKilling(ProtectedAlone(0, {{40, 0}})).failure_node_hours, 2 * 40 / 3600.0);
}
TEST(Replay, AFailureLeavesAnOwnSaveThatIsNewerThanTheImage) {
  Workload w = ProtectedAlone(0, {{100, 0}});
  w.jobs[0].own_interval = 95;
  const Metrics m = OfKilling(w);
  EXPECT_DOUBLE_EQ(m.failure_node_hours, 2 * 5 / 3600.0);
  EXPECT_DOUBLE_EQ(m.failure_restore_node_hours, 2 * 12 / 3600.0);
}
// At 85 the second image does not count yet, and the first is whole.
TEST(Replay, AnImageThatSharesPagesIsCopiedBeforeItIsRead) {
  EXPECT_DOUBLE_EQ(OfKilling(ProtectedAlone(0, {{85, 0}})).failure_restore_node_hours, 2 * 12 / 3600.0);
  EXPECT_DOUBLE_EQ(OfKilling(ProtectedAlone(0, {{90, 0}})).failure_restore_node_hours, 2 * 32 / 3600.0);
}
// Restored at 132 with the work of 84, so that it has its first image at 168.
TEST(Replay, ARestoredJobBeginsWithAWholeImage) {
  const Metrics m = OfKilling(ProtectedAlone(0, {{100, 0}, {190, 0}}));
  EXPECT_DOUBLE_EQ(m.failure_node_hours, 2 * (16 + 22) / 3600.0);
  EXPECT_DOUBLE_EQ(m.failure_restore_node_hours, 2 * (32 + 12) / 3600.0);
}
// Frozen from 100 to 150; the third image is begun at 173 and counts 3 s later.
TEST(Replay, TheScheduleOfAFrozenJobStandsStillAsWell) {
  for (const auto& [failure, lost] : {std::pair{160.0, 26.0}, std::pair{180.0, 7.0}}) {
    Workload w = Protected(0);
    w.jobs[1].trace.nodes = 2;
    w.failures = {{failure, 0}};
    EXPECT_DOUBLE_EQ(OfProtecting(w, Method::kSuspend).failure_node_hours, 2 * lost / 3600);
  }
}
TEST(Replay, AnOrderWaitsForTheImageThatIsUnderWay) {
  Workload w = Protected(0);
  w.jobs[1].trace.submit = 40;
  EXPECT_NEAR(OfProtecting(w, Method::kSuspend).on_demand_wait_mean, 8, 1e-6);
}
TEST(Replay, AProtectedJobEndsLaterByItsStops) {
  const Metrics m = OfKilling(ProtectedAlone(1));
  EXPECT_GT(m.span, 1015);
  EXPECT_NEAR(m.stop_node_hours, 2 * (m.span - 1000) / 3600, 1e-9);
}
TEST(Replay, AProtectedJobEndsLaterByItsPageFaults) {
  Workload w = ProtectedAlone(0);
  w.parameters.page_fault = 1e-6;
  const Metrics m = OfKilling(w);
  EXPECT_GT(m.span, 1001);
  EXPECT_NEAR(m.fault_node_hours, 2 * (m.span - 1000) / 3600, 1e-9);
}
// Of 250 s it has a whole image and five others: at 36, 84, 123, 162, 201 and 240.
TEST(Replay, BytesOfImagesAreCounted) {
  Workload w = ProtectedAlone(0);
  w.jobs[0].trace.runtime = 250;
  EXPECT_NEAR(OfKilling(w).bytes_written, 2 * 10e9 * (1 + 5 * 0.1), 1);
}
TEST(Replay, OthersHaveTheBandwidthThatImagesLeave) {
  Workload w = Protected(0);
  w.parameters.shared_bandwidth = 1e9;
  w.parameters.tolerance = 200;
  EXPECT_DOUBLE_EQ(OfProtecting(w, Method::kCheckpoint).checkpoint_node_hours, 2 * 40 / 3600.0);
}
TEST(Replay, ARestoreAfterAKillIsNotOneAfterAFailure) {
  const Metrics m = OfKilling(Protected(0));
  EXPECT_DOUBLE_EQ(m.restore_node_hours, 2 * 32 / 3600.0);
  EXPECT_EQ(m.failure_restore_node_hours, 0);
}
// Images on nodes' own disks, which take as long as before. The first counts at 48 s. The second, with the
// work of 84, counts at 87, and is copied 4.8 s later if there is as much bandwidth.
Strategy OnDisks() {
  Strategy strategy = Protecting(Method::kKill);
  strategy.policy.checkpoint_tier = Tier::kLocal;
  return strategy;
}
TEST(Replay, AFailureLeavesTheNewestCopy) {
  for (const auto& [at, copied] : {std::pair{90.0, 36}, std::pair{93.0, 84}}) {
    const Workload w = ProtectedAlone(0, {{at, 0}});
    const Metrics m = Measure(w, "ours", Replay(w, OnDisks()));
    EXPECT_DOUBLE_EQ(m.failure_node_hours, 2 * (at - copied) / 3600) << at;
  }
}
TEST(Replay, BytesOfCopiesAreCounted) {
  Workload w = ProtectedAlone(0);
  w.jobs[0].trace.runtime = 250;
  EXPECT_NEAR(Measure(w, "ours", Replay(w, OnDisks())).bytes_copied,
              2 * 10e9 * (1 + 5 * RowOf(0.1).MeanShare()), 1);
}

// The batch job, on nodes 2 and 3, makes way at 88 for a request that has these from 98 to 148. The other two
// nodes are free from 99 on.
Workload MakesWay(double shared_bandwidth) {
  Workload w = Protected(0);
  w.nodes = 4;
  w.parameters.shared_bandwidth = shared_bandwidth;
  w.jobs[1].trace = {88, 50, 50, 2};
  Job other = w.jobs[1];
  other.trace = {0, 99, 1000, 2};
  w.jobs.push_back(other);
  return w;
}
// When it has nodes again, and which.
LogEntry ComesBack(const Workload& w, const Strategy& strategy) {
  LogEntry back;
  for (const LogEntry& entry : Replay(w, strategy, true).log) {
    if (entry.job == 0 && entry.what == LogEntry::What::kTake) back = entry;
  }
  std::sort(back.nodes.begin(), back.nodes.end());
  return back;
}
const std::vector<int> kItsOwn = {2, 3}, kOthers = {0, 1};

TEST(Replay, AKillLeavesTheNewestImageOnADisk) {
  const Workload w = MakesWay(0.2e9);
  EXPECT_EQ(Replay(w, OnDisks()).jobs[0].redone, 88 - 84);
}
// A tenth of 20 GB is not there yet, and half of 2 GB/s are its part.
TEST(Replay, OnOtherNodesItContinuesOnceItsImageIsCopied) {
  const LogEntry back = ComesBack(MakesWay(2e9), OnDisks());
  EXPECT_DOUBLE_EQ(back.at, 98 + 2);
  EXPECT_EQ(back.nodes, kOthers);
}
// To copy it would take until 318.
TEST(Replay, OnItsOwnNodesItContinuesBefore) {
  const LogEntry back = ComesBack(MakesWay(0.2e9), OnDisks());
  EXPECT_EQ(back.at, 148);
  EXPECT_EQ(back.nodes, kItsOwn);
}
TEST(Replay, AnImageInSharedStorageTiesItToNoNodes) {
  const LogEntry back = ComesBack(MakesWay(2e9), Protecting(Method::kKill));
  EXPECT_EQ(back.at, 99);
  EXPECT_EQ(back.nodes, kOthers);
}
TEST(Replay, WhatIsNotToBeCopiedStaysOnItsNodes) {
  Strategy strategy = OnDisks();
  strategy.policy.copy_images = false;
  EXPECT_EQ(ComesBack(MakesWay(200e9), strategy).nodes, kItsOwn);
}
TEST(Replay, OnItsOwnNodesItReadsTheirDisks) {
  EXPECT_EQ(Replay(MakesWay(0.2e9), OnDisks()).jobs[0].restoring, 32);
}
TEST(Replay, WithADiskWhatWasNotCopiedIsLost) {
  Workload w = MakesWay(0.2e9);
  w.failures = {{100, 2}};
  EXPECT_EQ(Replay(w, OnDisks()).jobs[0].redone_failures, 84);
  EXPECT_EQ(ComesBack(w, OnDisks()).at, 100);
}
TEST(Replay, WithADiskWhatWasCopiedIsNotLost) {
  Workload w = MakesWay(2e9);
  w.failures = {{110, 2}};
  EXPECT_EQ(Replay(w, OnDisks()).jobs[0].redone_failures, 0);
}

TEST(Replay, AFailureThatSparesTheDiskLeavesTheNewestImage) {
  for (const auto& [at, image] : {std::pair{40.0, 0}, std::pair{90.0, 84}}) {
    const Workload w = ProtectedAlone(0, {{at, 0, false}});
    EXPECT_DOUBLE_EQ(Replay(w, OnDisks()).jobs[0].redone_failures, at - image);
  }
}
TEST(Replay, OfAnImageInSharedStorageNoFailureTakesAnything) {
  const auto lost = [](bool disk) { return OfKilling(ProtectedAlone(0, {{500, 0, disk}})).failure_cost(); };
  EXPECT_EQ(lost(true), lost(false));
}
TEST(Replay, AJobThatIsBeingEndedKeepsItsImageOnADiskThatIsSpared) {
  for (const auto& [lost, image] : {std::pair{true, 0}, std::pair{false, 84}}) {
    Workload w = MakesWay(0.2e9);
    w.failures = {{92, 2, lost}};
    EXPECT_EQ(Replay(w, OnDisks()).jobs[0].redone, 88 - image);
  }
}
// A node of the first job fails at 90, and a request that could not be planned has both from then to 140.
Workload FailsWhileOneWaits(double shared_bandwidth) {
  Workload w = MakesWay(shared_bandwidth);
  w.parameters.tolerance = 5;
  w.failures = {{90, 2, false}};
  return w;
}
TEST(Replay, AfterAFailureItWaitsForItsOwnNodes) {
  const LogEntry back = ComesBack(FailsWhileOneWaits(0.2e9), OnDisks());
  EXPECT_EQ(back.at, 140);
  EXPECT_EQ(back.nodes, kItsOwn);
}
TEST(Replay, AfterAFailureItTakesOtherNodesOnceItsImageIsCopied) {
  const Workload w = FailsWhileOneWaits(2e9);
  const LogEntry back = ComesBack(w, OnDisks());
  EXPECT_EQ(back.at, 99);
  EXPECT_EQ(back.nodes, kOthers);
  EXPECT_EQ(Replay(w, OnDisks()).jobs[0].redone_failures, 90 - 84);
}
TEST(Replay, AnOnDemandJobThatWaitsLosesItsImageWithADisk) {
  Workload w = FailsWhileOneWaits(0.2e9);
  w.parameters.protect_on_demand = w.jobs[0].on_demand = true;
  w.failures = {{90, 0, false}, {95, 0, true}};  // it came before the other, and has these nodes
  EXPECT_EQ(Replay(w, OnDisks()).jobs[0].redone_failures, 90);
}

TEST(Metrics, TheCostsHaveEachHourOnce) {
  Workload w = Protected(1);
  w.failures = {{500, 0}};
  const Metrics m = OfKilling(w);
  EXPECT_DOUBLE_EQ(m.preemption_cost() + m.failure_cost() + m.protection_cost(),
                   m.lost_node_hours + m.failure_node_hours + m.checkpoint_node_hours + m.restore_node_hours +
                       m.stop_node_hours + m.fault_node_hours);
}
TEST(Strategies, AllAreProtectedIfThatIsAskedFor) {
  for (const Strategy& strategy : AllStrategies({}))
    EXPECT_EQ(MostLostWork(strategy.policy) > Duration(0), strategy.name.starts_with("siding-protected"));
  for (const Strategy& strategy : AllStrategies({}, true))
    EXPECT_EQ(MostLostWork(strategy.policy), std::chrono::minutes(1)) << strategy.name;
}
TEST(Strategies, TheProtectedOneProtectsWhereTheClassDoesNot) {
  Policy policy;
  policy.classes = {{.name = "all", .most_lost_work = Duration(0)}};
  EXPECT_EQ(MostLostWork(ParseStrategies("siding-protected", policy)->front().policy),
            std::chrono::minutes(1));
}
TEST(Strategies, TheProtectedOneKeepsToThePolicyFile) {
  Policy policy;
  policy.most_lost_work = std::chrono::minutes(5);
  EXPECT_EQ(ParseStrategies("siding-protected", policy)->front().policy.most_lost_work,
            std::chrono::minutes(5));
  EXPECT_EQ(ParseStrategies("siding-protected", {})->front().policy.most_lost_work, std::chrono::minutes(1));
}
TEST(Strategies, TheLocalOneDiffersFromTheProtectedOneByItsTier) {
  const std::vector<Strategy> both = *ParseStrategies("siding-protected,siding-protected-local", {});
  EXPECT_EQ(both[0].policy.checkpoint_tier, Tier::kShared);
  EXPECT_EQ(both[1].policy.checkpoint_tier, Tier::kLocal);
  EXPECT_EQ(both[0].policy.most_lost_work, both[1].policy.most_lost_work);
}
TEST(Strategies, WhereThePolicyFileSaysSoAllImagesAreOnDisks) {
  Policy policy;
  policy.checkpoint_tier = Tier::kLocal;
  EXPECT_EQ(ParseStrategies("siding-protected", policy)->front().policy.checkpoint_tier, Tier::kLocal);
  for (const Strategy& strategy : AllStrategies(policy, true))
    EXPECT_EQ(strategy.policy.checkpoint_tier, Tier::kLocal) << strategy.name;
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
